import {
  type LimitName,
  limitNumbers,
  type LimitsEdit,
  type LimitValues,
  type OwnLimits,
} from '@gatehouse/contract/limits'

// What was set for a project or a key, and how a change is applied to it.

const names = Object.keys(limitNumbers) as (keyof typeof limitNumbers)[]

/** null for the whole removes every number, null for a member removes one, an absent member keeps its number. */
export function editLimits(
  current: LimitValues,
  edit: LimitsEdit | undefined | Readonly<Partial<Record<LimitName, number | null>>>,
): LimitValues {
  if (edit === undefined) return current
  if (edit === null) return {}
  const merged = Object.entries({ ...current, ...withoutAbsent(edit) })
  return Object.fromEntries(merged.filter(([, number]) => number !== null)) as LimitValues
}

const withoutAbsent = (edit: object) =>
  Object.fromEntries(Object.entries(edit).filter(([, number]) => number !== undefined))

export function areSameLimits(left: LimitValues, right: LimitValues): boolean {
  const all = new Set([...Object.keys(left), ...Object.keys(right)]) as Set<LimitName>
  return [...all].every((name) => left[name] === right[name])
}

/** As projects and keys show them. */
export function presentLimits(values: LimitValues): OwnLimits {
  if (names.every((name) => values[name] === undefined)) return null
  return Object.fromEntries(names.map((name) => [name, values[name] ?? null])) as OwnLimits
}

export type AboveOrganization = { name: LimitName; number: number; limit: number }

/** The first number of a change that is above the organization's, which would never be reached. */
export function findAboveOrganization(
  edit: LimitsEdit | undefined,
  organization: Readonly<Record<LimitName, number>>,
): AboveOrganization | undefined {
  for (const name of names) {
    const number = edit?.[name]
    const limit = organization[name]
    if (number !== undefined && number !== null && number > limit) return { name, number, limit }
  }
  return undefined
}
