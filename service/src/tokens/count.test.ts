import { durationRatio } from '@gatehouse/tools/testing/duration-ratio'
import fc from 'fast-check'
import cl100k from 'js-tiktoken/ranks/cl100k_base'
import o200k from 'js-tiktoken/ranks/o200k_base'
import { get_encoding as getEncoding } from 'tiktoken'
import { describe, expect, test } from 'vitest'

import { countTexts, loadCounter } from './count.ts'
import { hostileTexts, unknownWords } from './hostile-texts.ts'
import { type Encoding, encodings, loadRanks } from './ranks.ts'
import { pieceEnds } from './split.ts'
import { createTextCounter, type TextCounter } from './text-counter.ts'

function countAtOnce(counter: TextCounter, text: string): number {
  const steps = counter(text)
  let step = steps.next()
  while (!step.done) step = steps.next()
  return step.value
}

const fragments = [
  'a',
  'b',
  'A',
  'Z',
  'é',
  'ß',
  'ſ',
  'İ',
  'ﬁ',
  'ǅ',
  'ʰ',
  '漢',
  '字',
  '\u{20000}',
  'ا',
  'क',
  'ि',
  '😀',
  '👩\u200d👩\u200d👧',
  '\u0301',
  '\u20dd',
  '٣',
  'Ⅷ',
  '½',
  '0',
  '12',
  '345',
  '\u{1d7d8}',
  ' ',
  '  ',
  '\n',
  '\r\n',
  '\r',
  '\t',
  '\v',
  '\u00a0',
  '\u0085',
  '\u2028',
  '\u3000',
  '\ufeff',
  '!',
  '...',
  '---',
  '/',
  '//',
  '{',
  '}',
  '();',
  "'",
  "'s",
  "'S",
  "'LL",
  "'rE",
  "'ve",
  "don't",
  'THE',
  'The',
  'iPhone',
  '<|endoftext|>',
  '\0',
  '\ud800',
  '\udc00',
  '\ufffd',
  ' x',
  ' X',
]
const someText = fc
  .array(fc.tuple(fc.constantFrom(...fragments), fc.constantFrom(1, 1, 1, 1, 1, 1, 2, 3, 40)), {
    maxLength: 120,
  })
  .map((parts) => parts.map(([fragment, times]) => fragment.repeat(times)).join(''))
const anyText = fc.oneof(
  { weight: 5, arbitrary: someText },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 200 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary-ascii', maxLength: 500 }) },
  { weight: 1, arbitrary: fc.json() },
)

const published = { o200k: 'o200k_base', cl100k: 'cl100k_base' } as const

describe.each(encodings)('%s', (encoding: Encoding) => {
  const reference = getEncoding(published[encoding])

  test('random texts have the same token count as in the published implementation', async () => {
    const counter = await loadCounter(encoding)
    fc.assert(
      fc.property(anyText, (text) => {
        expect(countAtOnce(counter, text)).toBe(reference.encode_ordinary(text).length)
      }),
      { numRuns: 1500 },
    )
  })

  test.each(Object.entries(hostileTexts))(
    '%s: the token count is that of the published implementation',
    async (_name, make) => {
      const counter = await loadCounter(encoding)
      const text = make(2000)
      expect(countAtOnce(counter, text)).toBe(reference.encode_ordinary(text).length)
    },
  )

  test('slicing long pieces changes a count by at most a thousandth', async () => {
    const ranks = await loadRanks(encoding)
    const pieceEnd = pieceEnds[encoding]
    const sliced = createTextCounter({ ranks, pieceEnd })
    const whole = createTextCounter({ ranks, pieceEnd, sliceCharacters: Infinity })
    for (const [name, make] of Object.entries(hostileTexts)) {
      const text = make(20_000)
      const expected = countAtOnce(whole, text)
      const difference = Math.abs(countAtOnce(sliced, text) - expected)
      expect(difference / expected, name).toBeLessThanOrEqual(0.001)
    }
  })
})

test('60 KB in one piece are counted almost as fast as 60 KB of words', async () => {
  const ranks = await loadRanks('o200k')
  const count = (text: string) =>
    countAtOnce(createTextCounter({ ranks, pieceEnd: pieceEnds.o200k }), text)
  const words = unknownWords(60_000)
  for (const [name, make] of Object.entries(hostileTexts)) {
    const text = make(60_000)
    const comparison = { work: () => count(text), baseline: () => count(words), limit: 6 }
    // A quadratic counter takes more than a hundred times as long.
    expect(await durationRatio(name, comparison), name).toBeLessThan(6)
  }
})

test('a piece of several megabytes is split without a stack overflow', () => {
  for (const piece of ['漢', '\u0301', ' ']) {
    const text = piece.repeat(4_000_000)
    expect(pieceEnds.o200k(text, 0)).toBe(text.length)
  }
})

function piecesOf(encoding: Encoding, text: string): string[] {
  const pieces: string[] = []
  for (let start = 0; start < text.length;) {
    const end = pieceEnds[encoding](text, start)
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}

test('the pieces are the matches of the published pattern', () => {
  const patterns = { o200k: o200k.pat_str, cl100k: cl100k.pat_str }
  const marked = fc.string({ unit: fc.constantFrom('\u0301', 'A', 'a', '漢', ' ', "'", 's', '\n') })
  fc.assert(
    fc.property(fc.oneof(anyText, marked), fc.constantFrom(...encodings), (text, encoding) => {
      // The pattern is written for an engine in which \s matches Unicode's white space.
      const source = patterns[encoding]
        .replaceAll('\\s', '\\p{White_Space}')
        .replaceAll('\\S', '\\P{White_Space}')
      const expected = [...text.matchAll(new RegExp(source, 'gu'))].map(([piece]) => piece)
      expect(piecesOf(encoding, text)).toEqual(expected)
    }),
    { numRuns: 1000 },
  )
})

test('an encoding is loaded once', async () => {
  expect(loadRanks('o200k')).toBe(loadRanks('o200k'))
  expect(await loadCounter('o200k')).toBe(await loadCounter('o200k'))
})

test('texts are counted in order, and an error thrown after a step ends the count', async () => {
  expect(await countTexts('cl100k', ['', 'hello world', '!'], () => undefined)).toEqual([0, 2, 1])
  let steps = 0
  const counting = countTexts('cl100k', ['a b '.repeat(100_000)], () => {
    steps++
    if (steps === 3) throw new Error('Enough.')
    return undefined
  })
  await expect(counting).rejects.toThrow('Enough.')
  expect(steps).toBe(3)
})
