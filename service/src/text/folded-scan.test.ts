import fc from 'fast-check'
import { expect, test } from 'vitest'

import { foldCases, scanFolded } from './folded-scan.ts'
import { LiteralSet } from './literal-set.ts'

/** What is found in a text that comes in pieces, as `literal@start`. */
function scan(literals: readonly string[], pieces: readonly string[]): string[] {
  const folded = scanFolded(new LiteralSet(literals.map(foldCases)))
  const found: string[] = []
  for (const piece of pieces) {
    folded.read(piece, (literal, start) => void found.push(`${literals[literal]}@${start}`))
  }
  return found
}

test.each([
  ['bomb', 'A BoMb', 'bomb@2'],
  ['strasse', 'ßßß Straße.', 'strasse@4'],
  ['STRASSE', '\u0390\u0390 straße', 'STRASSE@3'],
  ['se', 'Straße', 'se@4'],
  ['\u{10428}x', 'ß\u{10400}X', '\u{10428}x@1'],
])('%s is found in %s where it begins', (literal, text, found) => {
  expect(scan([literal], [text])).toContain(found)
})

const characters = fc.constantFrom(
  'a',
  'B',
  'ß',
  'ẞ',
  's',
  'S',
  '\u0390',
  'İ',
  'ŉ',
  '\u{10400}',
  ' ',
)
const text = fc.array(characters, { maxLength: 30 })

test('what is found does not depend on the pieces', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(characters, { minLength: 1, maxLength: 4 }), {
        minLength: 1,
        maxLength: 5,
      }),
      text,
      fc.array(fc.nat(30)),
      (terms, whole, cuts) => {
        const literals = terms.map((term) => term.join(''))
        const bounds = [0, ...cuts.filter((cut) => cut < whole.length), whole.length]
        const places = bounds.toSorted((one, other) => one - other)
        const pieces = places.slice(1).map((end, at) => whole.slice(places[at], end).join(''))
        const found = scan(literals, pieces)
        expect(found).toEqual(scan(literals, [whole.join('')]))
        for (const hit of found) {
          const [literal = '', start] = hit.split('@')
          const rest = foldCases(whole.join('').slice(Number(start)))
          // A literal can begin in the middle of what a character became.
          expect([0, 1, 2].some((skip) => rest.slice(skip).startsWith(foldCases(literal)))).toBe(
            true,
          )
        }
      },
    ),
  )
})

test('no character becomes shorter by folding', () => {
  const shorter: string[] = []
  for (let code = 0; code < 0x11_0000; code++) {
    const character = String.fromCodePoint(code)
    if (foldCases(character).length < character.length) shorter.push(character)
  }
  expect(shorter).toEqual([])
})
