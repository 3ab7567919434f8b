import type { Json } from '#inference/answer.ts'

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value, or an empty object where it is none. */
export const objectOf = (value: unknown): Json => (isObject(value) ? value : {})

/** The value, or null where it is no text. */
export const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
