/**
 * The classes of characters that the split patterns of the encodings speak of. Every character has
 * exactly one. White space is Unicode's, as in the published implementations: with U+0085, without U+FEFF.
 */
export const characterClass = {
  upper: 1,
  lower: 2,
  /** Letters without case: they may stand where upper or lower case is asked for. */
  caseless: 3,
  mark: 4,
  number: 5,
  newline: 6,
  space: 7,
  other: 8,
} as const

const patterns = [
  [characterClass.lower, /^\p{Ll}/u],
  [characterClass.upper, /^[\p{Lu}\p{Lt}]/u],
  [characterClass.caseless, /^[\p{Lm}\p{Lo}]/u],
  [characterClass.mark, /^\p{M}/u],
  [characterClass.number, /^\p{N}/u],
  [characterClass.newline, /^[\r\n]/u],
  [characterClass.space, /^\p{White_Space}/u],
] as const

/** By code point, filled as characters are met; 0 is not yet known. */
const known = new Uint8Array(0x11_0000)

/** 0 at the end of the text. */
export function classAt(text: string, position: number): number {
  const codePoint = text.codePointAt(position)
  if (codePoint === undefined) return 0
  return known[codePoint] || learn(codePoint)
}

function learn(codePoint: number): number {
  const character = String.fromCodePoint(codePoint)
  const match = patterns.find(([, pattern]) => pattern.test(character))
  const found = match ? match[0] : characterClass.other
  known[codePoint] = found
  return found
}

/** Where the next character begins: a pair of surrogates is one character. */
export function after(text: string, position: number): number {
  return (text.codePointAt(position) ?? 0) > 0xffff ? position + 2 : position + 1
}
