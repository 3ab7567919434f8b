import type { Json } from '#inference/answer.ts'

/** What others sent, read with care: each answers undefined when the value is of another kind. */
export const asObject = (value: unknown): Json | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined

export const asText = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined

export const asNumber = (value: unknown): number | undefined =>
  typeof value === 'number' ? value : undefined

export const asBoolean = (value: unknown): boolean | undefined =>
  typeof value === 'boolean' ? value : undefined

export const asList = (value: unknown): readonly unknown[] | undefined =>
  Array.isArray(value) ? value : undefined

/** A place in a list: 0, 1, 2 … */
export const asIndex = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
