const backslash = 92
/** As many as the decoder of escapes takes for one. */
const backslashesMost = 64
const escapeLetter = /^["/bfnrt]$/
const hexDigits = /^[\da-fA-F]{4}$/

/**
 * The JSON escape that a place divides, in a text: from its first backslash to behind its last character. Null where the
 * place divides none.
 */
export function findDividedEscape(text: string, place: number): EscapePlace | null {
  return findDivided(text, place) ?? findDividedInEscapes(text, place)
}

type EscapePlace = { start: number; end: number }

/** As in JSON in JSON: a backslash that is an escape itself, before a letter that may be one too. */
const escapedBackslash = /(?:\\{1,64}u005[cC]){1,8}$/
const escapedLetter = /^(?:["/bfnrt]|\\{1,64}u00(?:22|2[fF]|62|66|6[eE]|72|74))/
const longestBackslashes = 64

function findDividedInEscapes(text: string, place: number): EscapePlace | null {
  if (text.slice(Math.max(0, place - 5), place).toLowerCase() !== 'u005c') return null
  const before = escapedBackslash.exec(text.slice(Math.max(0, place - longestBackslashes), place))
  const letter = escapedLetter.exec(text.slice(place, place + longestBackslashes + 6))
  if (!before || !letter) return null
  return { start: place - before[0].length, end: place + letter[0].length }
}

function findDivided(text: string, place: number): EscapePlace | null {
  for (let back = 1; back <= 5; back++) {
    const last = place - back
    if (text.charCodeAt(last) !== backslash) continue
    const end = findEscapeEnd(text, last)
    return end > place ? { start: findFirstBackslash(text, last), end } : null
  }
  return null
}

function findFirstBackslash(text: string, last: number): number {
  let start = last
  while (last - start + 1 < backslashesMost && text.charCodeAt(start - 1) === backslash) start--
  return start
}

/** Where the escape ends that has a backslash here. */
function findEscapeEnd(text: string, at: number): number {
  let letter = at + 1
  while (letter - at < backslashesMost && text.charCodeAt(letter) === backslash) letter++
  if (text.charAt(letter) === 'u' && hexDigits.test(text.slice(letter + 1, letter + 5))) {
    return letter + 5
  }
  return escapeLetter.test(text.charAt(letter)) ? letter + 1 : letter
}
