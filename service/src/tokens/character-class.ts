/**
 * The character classes that the split patterns of the encodings use. Every character has exactly one. White space is
 * as in Unicode and in the published implementations: U+0085 is white space, U+FEFF is not.
 */
export const characterClass = {
  upper: 1,
  lower: 2,
  /** Letters without case; they match as upper and as lower case. */
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

/** The class of each code point, computed on first use; 0 means not yet computed. */
const classes = new Uint8Array(0x11_0000)

/** The class of the character at a position; 0 at the end of the text. */
export function classAt(text: string, position: number): number {
  const codePoint = text.codePointAt(position)
  if (codePoint === undefined) return 0
  return classes[codePoint] || classify(codePoint)
}

function classify(codePoint: number): number {
  const character = String.fromCodePoint(codePoint)
  const match = patterns.find(([, pattern]) => pattern.test(character))
  const found = match ? match[0] : characterClass.other
  classes[codePoint] = found
  return found
}

/** The position after a character; a surrogate pair is one character. */
export function after(text: string, position: number): number {
  return (text.codePointAt(position) ?? 0) > 0xffff ? position + 2 : position + 1
}
