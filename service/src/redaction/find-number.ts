import { isIPv4 } from 'node:net'

import { foldDashes, isAlphanumeric, isContinued, isDigit } from './characters.ts'
import { passesLuhn } from './checksums.ts'
import type { EntityKind, Find, Finding } from './entity.ts'

/** A number has at most this many characters, and what follows it is looked at too. */
const sliceLength = 42
const numberCharacters = /^[0-9 .\-()/+]*$/

/**
 * Card numbers, social security numbers, phone numbers and IPv4 addresses: digits with separators. Telephone libraries were left out: they call
 * any ten digits a possible number, and the shapes below tell more.
 */
export const findNumber: Find = (seen, at) => {
  const { text, isWhole } = seen
  // Neither a bracket nor a plus begins a number without a digit behind it.
  const isDigitMissing = at + 1 < text.length && !isDigit(text.charCodeAt(at + 1))
  if (isDigitMissing && !isDigit(text.charCodeAt(at))) return null
  const written = text.slice(at, at + sliceLength)
  const slice = seen.hasDashes ? foldDashes(written) : written
  // All that follows depends on the characters of a number, and on the first one behind them.
  if (!isWhole && slice.length < sliceLength && numberCharacters.test(slice)) return 'open'
  const found = (kind: EntityKind, length: number): Finding | null =>
    length > 0 ? { kind, start: at, end: at + length } : null
  if (isContinued(seen, at, '.')) return null
  const card = found('CARD', findCardLength(slice))
  if (card || isContinued(seen, at, '-')) return card
  return (
    found('SSN', lengthOf(socialSecurityNumber, slice)) ??
    found('PHONE', findPhoneLength(slice)) ??
    found('IP', findAddressLength(slice))
  )
}

/** Who issued a card, and how many digits such cards have. */
const issuers: readonly (readonly [RegExp, readonly number[]])[] = [
  [/^4/, [13, 16, 19]], // Visa
  [/^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, [16]], // Mastercard
  [/^3[47]/, [15]], // American Express
  [/^3(?:0[0-5]|[689])/, [14, 16, 19]], // Diners Club
  [/^35(?:2[89]|[3-8])/, [16, 17, 18, 19]], // JCB
  [/^(?:6011|64[4-9]|65)/, [16, 17, 18, 19]], // Discover
  [/^(?:62|81)/, [16, 17, 18, 19]], // UnionPay
  [/^(?:50|5[6-9]|63|67)/, [16, 18, 19]], // Maestro
]

const isCard = (digits: string) =>
  issuers.some(([prefix, lengths]) => lengths.includes(digits.length) && prefix.test(digits)) &&
  passesLuhn(digits)

/** The longest card number in the groups of digits that begin here; 0: none. */
function findCardLength(slice: string): number {
  let digits = ''
  let longest = 0
  let separator = ''
  for (let at = 0, group = 0; at < slice.length && digits.length < 19;) {
    const character = slice.charAt(at)
    if (isDigit(slice.charCodeAt(at))) {
      digits += character
      group++
      at++
      const next = slice.charCodeAt(at)
      if (!isAlphanumeric(next) && digits.length >= 13 && isCard(digits)) longest = at
      continue
    }
    // Numbers of fewer digits side by side are a table. Only the last group of a card has fewer.
    const isSeparator = character === ' ' || character === '-' || character === '.'
    if (!isSeparator || group < 4 || (separator !== '' && character !== separator)) break
    separator = character
    group = 0
    at++
  }
  return longest
}

const socialSecurityNumber = /^(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![A-Za-z0-9])/
/** North American, where neither area nor exchange begins with 0 or 1. */
const northAmericanNumber = /^(?:1[-. ])?[2-9]\d{2}([-. ])[2-9]\d{2}\1\d{4}(?![A-Za-z0-9])/
const numberWithArea = /^\([2-9]\d{2}\) ?[2-9]\d{2}[-. ]?\d{4}(?![A-Za-z0-9])/
/** As in many countries, where the number in brackets begins with 0. */
const numberWithTrunk = /^\(0\d{1,4}\) ?\d{2,5}(?:[ -]?\d{2,5}){1,3}(?![A-Za-z0-9])/

const lengthOf = (pattern: RegExp, slice: string) => pattern.exec(slice)?.[0].length ?? 0

function findPhoneLength(slice: string): number {
  if (slice.startsWith('+')) return findInternationalLength(slice)
  if (slice.startsWith('('))
    return lengthOf(numberWithArea, slice) || lengthOf(numberWithTrunk, slice)
  return lengthOf(northAmericanNumber, slice)
}

/** Eight to fifteen digits, no more than two separators between any two of them. */
function findInternationalLength(slice: string): number {
  let longest = 0
  for (let at = 1, digits = 0, separators = 0; at < slice.length && digits < 15;) {
    const unit = slice.charCodeAt(at)
    if (isDigit(unit)) {
      if (digits === 0 && unit === 48) return 0 // no country has this code
      digits++
      separators = 0
      at++
      if (digits >= 8 && !isAlphanumeric(slice.charCodeAt(at))) longest = at
    } else if (digits > 0 && ' -./()'.includes(slice.charAt(at)) && separators < 2) {
      separators++
      at++
    } else break
  }
  return longest
}

const fourOctets = /^\d{1,3}(?:\.\d{1,3}){3}(?![A-Za-z0-9]|\.\d)/

function findAddressLength(slice: string): number {
  const address = fourOctets.exec(slice)?.[0] ?? ''
  return isIPv4(address) ? address.length : 0
}
