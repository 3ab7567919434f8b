import type { Json } from './answer.ts'

/**
 * What others sent, read with care. Where the value is of another kind, a function with `as` answers
 * undefined, and one with `Of` answers what stands for nothing.
 */
export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const asObject = (value: unknown): Json | undefined => (isObject(value) ? value : undefined)

export const asText = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined

export const asNumber = (value: unknown): number | undefined =>
  typeof value === 'number' ? value : undefined

export const asBoolean = (value: unknown): boolean | undefined =>
  typeof value === 'boolean' ? value : undefined

/** A place in a list: 0, 1, 2 … */
export const asIndex = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined

export const objectOf = (value: unknown): Json => (isObject(value) ? value : {})

export const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? (value as unknown[]) : []

const tokensMax = 1e9

/** A count of tokens. An impossible one is 0, because it would become somebody's bill. */
export function tokensOf(value: unknown): number {
  const count = asIndex(value) ?? 0
  return count <= tokensMax ? count : 0
}
