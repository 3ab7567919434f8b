import { ApiError } from '#platform/api-error.ts'
import { parseExact, TooManyNumbers } from '#platform/exact-json.ts'
import { finish, type Steps } from '#platform/steps/steps.ts'

const depthMax = 64
/** More than any conversation has. Parsing millions of tiny values would block the event loop. */
const valuesMax = 100_000
const quote = 0x22
const backslash = 0x5c

const invalidJson = (message: string) => new ApiError('invalid_json', message)

/**
 * Parses a JSON body: valid UTF-8, bounded depth (checked before parsing, because a value that is nested too
 * deep cannot be serialized again), no repeated member, and none whose name could reach a prototype. The
 * names of an open body are not checked: it belongs to a vendor's format.
 */
export function readJson(bytes: Buffer, { isOpen = false } = {}): unknown {
  finish(refuseDeepOrMany(bytes))
  const value = parse(decode(bytes), isOpen)
  const name = isOpen ? undefined : findBadName(bytes)
  if (name) throw invalidJson(`The body has the member '${name.text.slice(0, 80)}'${name.fault}.`)
  return value
}

/**
 * Like `readJson` for an open body, in steps: a large body would otherwise hold up every other call for as long as all
 * steps take together.
 */
export function* readOpenJson(bytes: Buffer): Steps<unknown> {
  yield* refuseDeepOrMany(bytes)
  yield
  const text = decode(bytes)
  yield
  return parse(text, true)
}

/** A body up to this size is read in a few milliseconds. */
export const largeBodyBytes = 64 * 1024

const decoder = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw invalidJson('The body is not valid UTF-8.')
  }
}

function parse(text: string, isOpen: boolean): unknown {
  try {
    // An open body is forwarded: its numbers must keep all their digits.
    return isOpen ? parseExact(text) : JSON.parse(text)
  } catch (error) {
    if (error instanceof TooManyNumbers) throw invalidJson(error.message)
    throw invalidJson('The body is not valid JSON.')
  }
}

/** Bytes; about a millisecond of work. */
const checkedAtOnce = 512 * 1024

function* refuseDeepOrMany(bytes: Buffer): Steps<void> {
  let depth = 0
  let values = 0
  let pauseAt = checkedAtOnce
  for (let index = 0; index < bytes.length; index++) {
    if (index > pauseAt) {
      pauseAt = index + checkedAtOnce
      yield
    }
    const byte = bytes[index]
    if (byte === quote) index = endOfString(bytes, index)
    else if (byte === 0x2c) values++
    else if (byte === 0x7b || byte === 0x5b) {
      depth++
      values++
    } else if (byte === 0x7d || byte === 0x5d) depth--
    if (depth > depthMax) throw invalidJson(`The body is nested deeper than ${depthMax} levels.`)
    if (values > valuesMax) throw invalidJson(`The body has more than ${valuesMax} values.`)
  }
}

/** The index of the closing quote of the string that starts at `start`; the length if there is none. */
function endOfString(bytes: Buffer, start: number): number {
  for (let index = bytes.indexOf(quote, start + 1); index !== -1;) {
    let escapes = 0
    while (bytes[index - 1 - escapes] === backslash) escapes++
    if (escapes % 2 === 0) return index
    index = bytes.indexOf(quote, index + 1)
  }
  return bytes.length
}

const forbiddenNames = new Set(['__proto__', 'constructor'])

/** Scans JSON that is known to be valid: a string followed by a colon is the name of a member. */
function findBadName(bytes: Buffer): { text: string; fault: string } | undefined {
  const open: Set<string>[] = []
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (byte === 0x7b || byte === 0x5b) open.push(new Set())
    else if (byte === 0x7d || byte === 0x5d) open.pop()
    else if (byte === quote) {
      const end = endOfString(bytes, index)
      if (isFollowedByColon(bytes, end + 1)) {
        const text = JSON.parse(bytes.toString('utf8', index, end + 1)) as string
        if (forbiddenNames.has(text)) return { text, fault: ', which is not allowed' }
        const names = open.at(-1)
        if (names?.has(text)) return { text, fault: ' more than once' }
        names?.add(text)
      }
      index = end
    }
  }
  return undefined
}

function isFollowedByColon(bytes: Buffer, start: number): boolean {
  let index = start
  while ([0x20, 0x09, 0x0a, 0x0d].includes(bytes[index] ?? 0)) index++
  return bytes[index] === 0x3a
}
