import { expect, test } from 'vitest'

import { splitContent } from './split-content.ts'

const content = (text: string, context = 'before') => ({
  direction: 'request' as const,
  context,
  text,
})

test('a text that a judge can read stays as it is', () => {
  expect(splitContent(content('x'.repeat(20_000)))).toEqual([content('x'.repeat(20_000))])
  expect(splitContent(content(''))).toEqual([content('')])
})

test('a longer text comes in pieces that overlap and know what was before', () => {
  const text = Array.from({ length: 45_000 }, (_, index) =>
    String.fromCharCode(0x4e00 + (index % 20_000)),
  ).join('')
  const pieces = splitContent(content(text))
  expect(pieces.map((piece) => piece.text.length)).toEqual([20_000, 20_000, 6000])
  const starts = [0, 19_500, 39_000]
  for (const [index, piece] of pieces.entries()) {
    const start = starts[index]!
    expect(piece.text).toBe(text.slice(start, start + 20_000))
    if (index > 0) expect(piece.context).toBe(text.slice(start - 2000, start))
  }
  expect(pieces[0]!.context).toBe('before')
})

test('no piece begins or ends with half a character', () => {
  for (const shift of ['', 'x']) {
    const pieces = splitContent(content(shift + '\u{1f600}'.repeat(30_000)))
    expect(pieces.every(({ text, context }) => text.isWellFormed() && context.isWellFormed())).toBe(
      true,
    )
    expect(pieces.at(-1)!.text.endsWith('\u{1f600}')).toBe(true)
  }
})

test('what no judge can read in time is refused, and takes no more than 16 pieces before', () => {
  expect(splitContent(content('\u{1f600}'.repeat(150_000))).length).toBeLessThanOrEqual(16)
  expect(() => splitContent(content('x'.repeat(300_001)))).toThrow(
    expect.objectContaining({ kind: 'too_long' }),
  )
})
