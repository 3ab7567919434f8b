// What TypeScript's library does not know yet of the JSON object of this Node.
type ExactJson = {
  parse(text: string, revive: (key: string, value: unknown, context: Context) => unknown): unknown
  rawJSON(text: string): unknown
}
/** `source` is there for numbers, texts, booleans and null. */
type Context = { source?: string }
const { parse, rawJSON } = JSON as unknown as ExactJson

/** Could a number in this text be one that a double cannot hold? Long digits inside texts only cost time. */
const mayHaveUnsafeNumber = /\d{16}|\d[eE][+-]?\d{3}/

/**
 * Parses JSON so that stringifying gives back every number as it was written: an id of 19 digits must not
 * come out rounded. Such a number becomes an object that only JSON.stringify understands.
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
  // Fractions are measurements: the nearest double is what everybody else makes of them too.
  if (!Number.isInteger(value) || /[.eE]/.test(source)) return true
  return Number.isSafeInteger(value) || BigInt(source) === BigInt(value)
}
