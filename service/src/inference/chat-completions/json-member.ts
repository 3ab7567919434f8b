import type { Json } from '#inference/answer.ts'

/** What others sent is looked at through these: a member is what we hope for, or not there. */
export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const objectOf = (value: unknown): Json | undefined => (isObject(value) ? value : undefined)

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined

export const numberOf = (value: unknown): number | null =>
  typeof value === 'number' ? value : null

export const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? (value as unknown[]) : []

/** The object without the members that are not there. */
export const withoutAbsent = (members: Json): Json =>
  Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== null && value !== undefined),
  )
