import { parseExact } from '#platform/exact-json.ts'

import type { Json } from './answer.ts'

/**
 * Read values of unknown JSON. For a value of another type, a function with `as` returns undefined, and one
 * with `Of` returns an empty value.
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

/** An index in a list: 0, 1, 2 … */
export const asIndex = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined

export const objectOf = (value: unknown): Json => (isObject(value) ? value : {})

export const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? (value as unknown[]) : []

/** No model reads or writes more in one call: an upstream that reports more is wrong. */
const tokensMax = 100_000_000

export const isTokenCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= tokensMax

/** A count of tokens. An impossible one is 0, because callers are charged by it. */
export const tokensOf = (value: unknown): number => (isTokenCount(value) ? value : 0)

/** Parses the input of a tool call. Undefined where it is JSON but no object; throws where it is no JSON. */
export function readToolInput(text: string): Json | undefined {
  const input = parseExact(text)
  // `parseExact` returns an object also for a number that a double cannot hold.
  return text.trimStart().startsWith('{') && isObject(input) ? input : undefined
}
