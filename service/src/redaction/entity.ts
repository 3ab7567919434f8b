/** What is found and redacted, by the names that rules and placeholders use. */
export const entityKinds = ['EMAIL', 'CARD', 'SSN', 'PHONE', 'IBAN', 'IP', 'SECRET'] as const
export type EntityKind = (typeof entityKinds)[number]

export const isEntityKind = (name: string): name is EntityKind =>
  (entityKinds as readonly string[]).includes(name)

/** A text as far as it has come. */
export type Seen = {
  readonly text: string
  /** Nothing more comes. */
  readonly isWhole: boolean
  /** An entity ends here. What stands before is not looked at: a placeholder will take its place. */
  readonly from: number
  /** Whether it has dashes that are no hyphens. */
  readonly hasDashes: boolean
}

/** Up to where something goes, and whether it may go on with what comes. */
export type Reach = { readonly end: number; readonly isOpen: boolean }

/** The rest of an entity that is certain already; `from` is how far it has been read. */
export type FindRest = (seen: Seen, from: number, start: number) => Reach

export type Finding = {
  readonly kind: EntityKind
  readonly start: number
  /** Up to here it is certain. */
  readonly end: number
  readonly findRest?: FindRest
}

/**
 * Looks for an entity at a place. 'open': what comes next decides. Any other answer depends on the text alone, never
 * on how much of it has come, so that it does not matter in which pieces a text arrives.
 */
export type Find = (seen: Seen, at: number) => Finding | 'open' | null

/** The most characters of a text that wait while it grows: a possible JSON Web Token, up to its second part. */
export const entityHold = 520
