import type { Steps } from '#platform/steps/steps.ts'

import { OffsetMap } from './offset-map.ts'

/** A JSON escape with its last backslash. */
const escape = /\\(?:["/bfnrt]|u[\da-fA-F]{4})/
/**
 * JSON inside of JSON doubles the backslashes at each level, so several of them count as one. More than any nesting needs are
 * text, so that an escape that has begun does not wait for ever.
 */
const backslashesMost = 64
/** The same at the end of what has come: the next piece decides. */
const begunEscape = /\\{1,64}(?:u[\da-fA-F]{0,3})?$/
/** Nothing that is longer is an escape that has begun. */
const begunMostLength = 68

/** A backspace is read as a space: no writer means it, and without it the text on both sides would be joined. */
const meanings: Readonly<Record<string, string>> = {
  b: ' ',
  f: ' ',
  n: '\n',
  r: '\r',
  t: '\t',
}

/** Whether a text reads otherwise when its JSON escapes are decoded. */
export const hasEscape = (text: string): boolean => text.includes('\\') && escape.test(text)

/**
 * Decodes the JSON escapes of a text as it grows; the result does not depend on how the text was cut into pieces. Everything
 * else stays as it is, JSON or not.
 */
export class EscapeDecoder {
  #map = new OffsetMap()
  readonly #escape = new RegExp(escape, 'g')
  /** An escape that may be complete with the next piece. */
  #begun = ''
  /** Units of the original that were returned, decoded. */
  #seen = 0
  #length = 0

  /** A copy that goes its own way from here. */
  fork(): EscapeDecoder {
    const fork = new EscapeDecoder()
    fork.#map = this.#map.fork()
    fork.#begun = this.#begun
    fork.#seen = this.#seen
    fork.#length = this.#length
    return fork
  }

  /** Decoded characters returned so far. */
  get length(): number {
    return this.#length
  }

  /** How much of the original is decoded. */
  get decodedTo(): number {
    return this.#seen
  }

  /** Whether an escape has begun that the next piece may complete. */
  get hasBegun(): boolean {
    return this.#begun !== ''
  }

  /**
   * Adds a piece of the original; returns the decoded characters that are now final. `onRun` is told of them run by run, each
   * with the place in the original where it starts: all of its characters follow each other there.
   */
  push(piece: string, onRun?: (text: string, start: number) => void): string {
    const text = this.#begun + piece
    const begun = this.#findBegun(text)
    this.#begun = text.slice(begun)
    return this.#decode(text.slice(0, begun), onRun)
  }

  /** The text is over; returns its last characters. */
  end(): string {
    const rest = this.#begun
    this.#begun = ''
    return this.#decode(rest)
  }

  /** Where in the original the decoded character at `index` starts. For `index === length`: how much has been decoded. */
  originalOffset(index: number): number {
    return index < this.#length ? this.#map.at(index) : this.#seen
  }

  /** The map before `index` is not needed any more. */
  forget(index: number): void {
    this.#map.forget(index)
  }

  /** Where an escape begins that the text does not end; its length where there is none. */
  #findBegun(text: string): number {
    const from = Math.max(0, text.length - begunMostLength)
    if (!text.includes('\\', from)) return text.length
    const begun = begunEscape.exec(text.slice(from))
    return begun ? from + begun.index : text.length
  }

  #decode(text: string, onRun?: (text: string, start: number) => void): string {
    let decoded = ''
    visitEscapes(text, this.#escape, (run, units) => {
      if (run !== '') onRun?.(run, this.#seen)
      decoded += this.#add(run, units)
    })
    return decoded
  }

  /** What this many units of the original stand for. */
  #add(decoded: string, units: number): string {
    if (units === 0) return ''
    this.#map.addRun(this.#length, this.#seen, decoded.length === units)
    this.#length += decoded.length
    this.#seen += units
    return decoded
  }
}

/** As many escapes are decoded in well under a millisecond. */
const escapesPerStep = 1024

/**
 * Visits a text in runs: what stands there, or what an escape means, and how long it is in the text. Begins at a place and ends
 * after this many escapes; returns the place where it goes on.
 */
function visitEscapes(
  text: string,
  pattern: RegExp,
  visit: (run: string, units: number) => void,
  { from = 0, most = Infinity } = {},
): number {
  let at = from
  let count = 0
  pattern.lastIndex = from
  for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
    const end = found.index + found[0].length
    let start = found.index
    const first = Math.max(at, start - backslashesMost + 1)
    while (start > first && text.charCodeAt(start - 1) === backslash) start--
    visit(text.slice(at, start), start - at)
    visit(meaningOf(found[0]), end - start)
    at = end
    if (++count === most) return at
  }
  visit(text.slice(at), text.length - at)
  return text.length
}

const backslash = 0x5c

function meaningOf(escaped: string): string {
  const letter = escaped.slice(1)
  if (letter.startsWith('u')) return String.fromCharCode(Number.parseInt(letter.slice(1), 16))
  return meanings[letter] ?? letter
}

/** Decodes the JSON escapes of a complete text, which may have millions of them. */
export function* decodeEscapes(text: string): Steps<string> {
  const pattern = new RegExp(escape, 'g')
  const pieces: string[] = []
  for (let from = 0; from < text.length;) {
    const runs: string[] = []
    from = visitEscapes(text, pattern, (run) => void runs.push(run), {
      from,
      most: escapesPerStep,
    })
    pieces.push(runs.join(''))
    if (from < text.length) yield
  }
  return pieces.join('')
}
