// The members of JSON that TypeScript's library does not declare yet.
type ExactJson = {
  parse(text: string, revive: (key: string, value: unknown, context: Context) => unknown): unknown
  rawJSON(text: string): unknown
}
/** `source` is set for numbers, strings, booleans and null. */
type Context = { source?: string }
const { parse, rawJSON } = JSON as unknown as ExactJson

/** Whether the text may contain a number that a double cannot hold. Digits inside strings match too, at no harm. */
const mayHaveUnsafeNumber = /\d{16}|\d[eE][+-]?\d{3}/

/**
 * Parses JSON so that JSON.stringify writes every number as it was: an id of 19 digits must not be rounded.
 * Such a number becomes an object that only JSON.stringify can read.
 */
export function parseExact(text: string): unknown {
  if (!mayHaveUnsafeNumber.test(text)) return JSON.parse(text)
  return parse(text, (_, value, { source }) =>
    typeof value === 'number' && source !== undefined && !isExact(value, source)
      ? rawJSON(source)
      : value,
  )
}

function isExact(value: number, source: string): boolean {
  if (!Number.isFinite(value)) return false
  // Fractions may be rounded: every other JSON parser rounds them to the nearest double too.
  if (!Number.isInteger(value) || /[.eE]/.test(source)) return true
  return Number.isSafeInteger(value) || BigInt(source) === BigInt(value)
}
