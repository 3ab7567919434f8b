/** What a word may consist of besides letters and digits: signs that people write instead of letters. */
const signs = "'$@!*"
const wordUnit = /[\p{L}\p{N}]/u

const unknown = 0
const outside = 1
const inside = 2

/** Whether a character of one unit belongs to a word, found at first use. */
const knownUnits = new Uint8Array(0x10000)

function isInWord(unit: number): boolean {
  const known = knownUnits[unit] ?? outside
  if (known !== unknown) return known === inside
  const character = String.fromCharCode(unit)
  const isWordUnit = signs.includes(character) || wordUnit.test(character)
  knownUnits[unit] = isWordUnit ? inside : outside
  return isWordUnit
}

const isQuoteOrSign = (unit: number) => unit === 0x27 || unit === 0x21 || unit === 0x2a
const isOpening = (unit: number) => isQuoteOrSign(unit) || unit === 0x40

/** Start and end of every word, one after another; quotes and signs around a word do not belong to it. */
export function findWords(text: string): number[] {
  const bounds: number[] = []
  let at = 0
  while (at < text.length) {
    if (!isInWord(text.charCodeAt(at))) {
      at++
      continue
    }
    let start = at
    while (at < text.length && isInWord(text.charCodeAt(at))) at++
    let end = at
    while (start < end && isOpening(text.charCodeAt(start))) start++
    while (end > start && isQuoteOrSign(text.charCodeAt(end - 1))) end--
    if (end > start) bounds.push(start, end)
  }
  return bounds
}
