import { randomUUID } from 'node:crypto'

// Members of JSON that TypeScript's library does not declare yet.
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): unknown
  isRawJSON(value: unknown): boolean
}

/** Whether this is a number that a double cannot hold, as `parseExact` returns it. A copy of it would be an object. */
export const isRawNumber = (value: unknown): boolean => isRawJSON(value)

const quote = 34
const isDigit = (unit: number) => unit >= 48 && unit <= 57

/**
 * Whether JSON may contain a number that a double cannot hold: sixteen digits in a row, or an exponent of three. A regular
 * expression over all of it begins anew at every digit, also in strings: on megabytes of short numbers V8 gives up on its fast
 * engine, and needs a second.
 */
export function mayHaveUnsafeNumber(text: string): boolean {
  let digits = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) at = endOfString(text, at) - 1
    else if (isDigit(unit)) {
      if (++digits === 16) return true
      continue
    }
    const isExponent = digits > 0 && (unit === 69 || unit === 101)
    if (isExponent && hasThreeDigits(text, at + 1)) return true
    digits = 0
  }
  return false
}

/** After a sign, if there is one. */
function hasThreeDigits(text: string, from: number): boolean {
  const first = text.charCodeAt(from)
  const at = first === 43 || first === 45 ? from + 1 : from
  return (
    isDigit(text.charCodeAt(at)) &&
    isDigit(text.charCodeAt(at + 1)) &&
    isDigit(text.charCodeAt(at + 2))
  )
}

/** More than any honest text has: each takes as long as forty plain numbers. */
const unsafeNumbersMax = 10_000

export class TooManyNumbers extends Error {
  override readonly name = 'TooManyNumbers'
}

/**
 * Parses JSON so that JSON.stringify writes every number as it was: an id of 19 digits must not be rounded.
 * Such a number becomes an object that only JSON.stringify can read; `TooManyNumbers` if there are too many.
 */
export function parseExact(text: string): unknown {
  if (!mayHaveUnsafeNumber(text)) return JSON.parse(text)
  // A reviver would be called for every value, and take ten times as long as the parser.
  const mark = randomUUID()
  const marked = markUnsafeNumbers(text, mark)
  if (marked === text) return JSON.parse(text)
  const holder = { root: JSON.parse(marked) as unknown }
  restoreNumbers(holder, mark)
  return holder.root
}

const stringOrNumber = /"|-?\d[\d.eE+-]*/g
const validNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const colonNext = /\s*:/y

/** Writes the unsafe numbers as strings that begin with the mark. What is not valid JSON stays so. */
function markUnsafeNumbers(text: string, mark: string): string {
  const pieces: string[] = []
  let copied = 0
  let found = 0
  stringOrNumber.lastIndex = 0
  for (let match = stringOrNumber.exec(text); match; match = stringOrNumber.exec(text)) {
    const [token] = match
    if (token === '"') {
      stringOrNumber.lastIndex = endOfString(text, match.index)
      continue
    }
    colonNext.lastIndex = stringOrNumber.lastIndex
    if (isExact(token) || !validNumber.test(token) || colonNext.test(text)) continue
    if (++found > unsafeNumbersMax) throw tooManyNumbers()
    pieces.push(text.slice(copied, match.index), `"${mark}${token}"`)
    copied = stringOrNumber.lastIndex
  }
  return copied === 0 ? text : pieces.join('') + text.slice(copied)
}

const tooManyNumbers = () =>
  new TooManyNumbers(
    `There are more than ${unsafeNumbersMax} numbers that a double cannot hold; send them as strings.`,
  )

/** The position after the string that starts at `start`; the length if it has no end. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text[end - 1 - escapes] === '\\') escapes++
    if (escapes % 2 === 0) return end + 1
  }
  return text.length
}

type Holder = Record<string, unknown>

function restoreNumbers(root: Holder, mark: string) {
  const open: Holder[] = [root]
  for (let holder = open.pop(); holder; holder = open.pop()) {
    for (const key of Object.keys(holder)) {
      const value = holder[key]
      if (typeof value === 'object' && value !== null) open.push(value as Holder)
      else if (typeof value === 'string' && value.startsWith(mark)) {
        setMember(holder, key, rawJSON(value.slice(mark.length)))
      }
    }
  }
}

/** An assignment to the member `__proto__` would set the prototype; for others it is the faster way. */
function setMember(holder: Holder, key: string, value: unknown) {
  if (key === '__proto__') Object.defineProperty(holder, key, { value })
  else holder[key] = value
}

function isExact(source: string): boolean {
  if (source.length < 16 && !/[eE]/.test(source)) return true
  const value = Number(source)
  if (!Number.isFinite(value)) return false
  // Fractions may be rounded: every other JSON parser rounds them to the nearest double too.
  if (!Number.isInteger(value) || /[.eE]/.test(source)) return true
  return Number.isSafeInteger(value) || BigInt(source) === BigInt(value)
}
