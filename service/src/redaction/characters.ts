import type { Reach, Seen } from './entity.ts'

// Of UTF-16 code units. Outside of a text a unit is NaN, which is in no class.

/** A class as a table: it is asked for every character of every text. */
export function classOf(characters: string): (unit: number) => boolean {
  const table = new Uint8Array(128)
  for (let at = 0; at < characters.length; at++) table[characters.charCodeAt(at)] = 1
  return (unit) => table[unit] === 1
}

const digits = '0123456789'
const lower = 'abcdefghijklmnopqrstuvwxyz'
const upper = lower.toUpperCase()
export const isDigit = classOf(digits)
export const isAsciiLetter = classOf(lower + upper)
export const isAlphanumeric = classOf(digits + lower + upper)
export const isUpperOrDigit = classOf(digits + upper)
/** As in base64url and in most keys. */
export const isKeyUnit = classOf(`${digits}${lower}${upper}-_`)
export const isHex = classOf(`${digits}abcdefABCDEF`)
/** With those of European languages: addresses have them too. */
export const isLetter = (unit: number) =>
  isAsciiLetter(unit) || (unit >= 0xc0 && unit <= 0x24f && unit !== 0xd7 && unit !== 0xf7)

/** Whether a number or a key can begin here: it is not the rest of a longer one. */
export const isTokenStart = ({ text, from }: Seen, at: number) =>
  at <= from || !isAlphanumeric(text.charCodeAt(at - 1))

/** Dashes as word processors and language models write them: hyphens, dashes and the minus sign. */
const otherDash = /[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/
const otherDashes = new RegExp(otherDash, 'g')

/** With every dash as `-`. It keeps its length. */
export const foldDashes = (text: string) => text.replaceAll(otherDashes, '-')

export const hasOtherDash = (text: string) => otherDash.test(text)

export const isDash = (unit: number) =>
  unit === 45 || (unit > 0xff && otherDash.test(String.fromCharCode(unit)))

/** Whether a number that stands here goes on one that stands before, as the parts of a version do. */
export function isContinued(
  { text, from, hasDashes }: Seen,
  at: number,
  separators: string,
): boolean {
  if (at - 2 < from || !isDigit(text.charCodeAt(at - 2))) return false
  const separator = text.charAt(at - 1)
  return separators.includes(hasDashes ? foldDashes(separator) : separator)
}

/** Where a run of units of a class ends, which has at most `most` of them. */
export function findRunEnd(
  { text, isWhole }: Seen,
  at: number,
  isInside: (unit: number) => boolean,
  most: number,
): Reach {
  let end = at
  while (end < text.length && end - at < most && isInside(text.charCodeAt(end))) end++
  return { end, isOpen: end === text.length && end - at < most && !isWhole }
}
