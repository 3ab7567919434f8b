import fc from 'fast-check'
import { expect, test } from 'vitest'

import { applyEdits, toTextEdits } from './text-edits.ts'

const edit = (start: number, end: number, replacement = 'X') => ({ start, end, replacement })

function rewrite(text: string, edits: Parameters<typeof toTextEdits>[1]): string | null {
  const found = toTextEdits(text, edits)
  return found && applyEdits(text, found)
}

test('offsets count code points, so a character outside of the basic plane is one', () => {
  expect(rewrite('😀ab😀', [edit(1, 2)])).toBe('😀Xb😀')
  expect(rewrite('😀ab😀', [edit(0, 1), edit(3, 4, '')])).toBe('Xab')
})

test('a lone surrogate is one code point, and no edit can end within a pair', () => {
  expect(rewrite('a\ud83db', [edit(1, 2)])).toBe('aXb')
  expect(rewrite('a\udc00\ud83d\ude00b', [edit(2, 3)])).toBe('a\udc00Xb')
})

test('edits may come in any order and side by side', () => {
  expect(rewrite('abcdef', [edit(4, 6, '2'), edit(0, 2, '1'), edit(2, 3, '')])).toBe('1d2')
})

test.each([
  ['empty', [edit(1, 1)]],
  ['backwards', [edit(2, 1)]],
  ['outside the text', [edit(2, 4)]],
  ['behind the text', [edit(4, 5)]],
  ['overlapping', [edit(0, 2), edit(1, 3)]],
  ['the same twice', [edit(0, 2), edit(0, 2)]],
])('edits are refused that are %s', (_, edits) => {
  expect(toTextEdits('abc', edits)).toBeNull()
})

/** What the contract says, in the plainest way. */
function rewriteByArray(text: string, edits: readonly ReturnType<typeof edit>[]): string {
  const points = Array.from(text)
  let written = ''
  for (let at = 0; at < points.length; at++) {
    const starting = edits.find(({ start }) => start === at)
    if (starting) written += starting.replacement
    const isInside = edits.some(({ start, end }) => start <= at && at < end)
    if (!isInside) written += points[at]
  }
  return written
}

const texts = fc.array(fc.constantFrom('a', 'ß', '😀', '\ud83d', '\udc00', '\n', 'e\u0301', '👩‍👩‍👧'), {
  maxLength: 30,
})

test('a rewritten text is what the contract says, for any text and any disjoint edits', () => {
  fc.assert(
    fc.property(texts, fc.array(fc.nat(60), { maxLength: 12 }), (pieces, places) => {
      const text = pieces.join('')
      const length = Array.from(text).length
      const within = [...new Set(places.map((place) => place % (length + 1)))].toSorted(
        (one, other) => one - other,
      )
      const edits = within.flatMap((start, index) => {
        const end = within[index + 1]
        return index % 2 === 0 && end !== undefined ? [edit(start, end, `<${index}>`)] : []
      })
      expect(rewrite(text, edits.toReversed())).toBe(rewriteByArray(text, edits))
    }),
    { numRuns: 2000 },
  )
})
