import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { Seam } from './readings.ts'
import { harmless, planted } from './testing/corpus.ts'
import { ValueFinder } from './value-finder.ts'

const seed = Number(process.env['REDACTION_SEED'] ?? Date.now() % 2 ** 31)
const runs = sizeOf({ usual: 2000, long: 100_000, variable: 'REDACTION_RUNS' })

/** What the finder hands on, with a bar at each seam. */
function find(parts: readonly string[], seam: Seam, length: number): string {
  let output = ''
  const finder = new ValueFinder({
    text: (text) => void (output += text),
    value: ({ kind, value, quote }) => void (output += `<${quote}${kind} ${value}${quote}>`),
    seam: () => void (output += '|'),
  })
  for (const [number, part] of parts.entries()) {
    if (number > 0) finder.join(number % 3 === 2 ? 'message' : seam)
    for (let at = 0; at < part.length; at += length) finder.push(part.slice(at, at + length))
  }
  finder.end()
  return output
}

const whole = (...parts: string[]) => find(parts, 'part', Infinity)

test('a value that spans parts is found in the first', () => {
  expect(whole('to jane@exam', 'ple.com', ' x')).toBe('to <EMAIL jane@example.com>|| x')
  expect(whole('a ', '', 'jane@a.com')).toBe('a ||<EMAIL jane@a.com>')
})

test('an escape may span parts too', () => {
  const [first, second] = ['jane\\u00', '40a.com, jane@a.com']
  expect(whole(first, second)).toBe('<EMAIL jane@a.com>|, <EMAIL jane@a.com>')
})

test('values of several readings that overlap are one', () => {
  // Without anything between the parts, the address begins earlier than with a line break.
  expect(whole('jane.', 'doe@a.com')).toBe('<EMAIL jane.doe@a.com>|')
})

const fillers = ['x '.repeat(60), 'word, '.repeat(30), 'a'.repeat(100)]
const fragments = [
  ...planted.map(([text]) => text),
  ...harmless,
  ...fillers,
  '\\n',
  '\\u0040',
  '\\u005c',
  '\\"',
  '{"a":',
  '4111111111111111',
  ',',
  '}',
  ' ',
  '\u2013',
]
const somePart = fc
  .array(fc.constantFrom(...fragments), { maxLength: 5 })
  .map((words) => words.join(''))

/** Cut at any place, so that values are divided. */
const someParts = fc
  .tuple(
    fc.array(somePart, { minLength: 1, maxLength: 3 }),
    fc.array(fc.nat(400), { maxLength: 3 }),
  )
  .map(([texts, cuts]) => {
    const text = texts.join('')
    const places = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length]
    const sorted = places.toSorted((one, other) => one - other)
    return sorted.slice(1).map((end, number) => text.slice(sorted[number], end))
  })

test(
  'what is found in parts does not depend on their pieces',
  { timeout: 60_000 + runs * 5 },
  () => {
    fc.assert(
      fc.property(
        someParts,
        fc.constantFrom<Seam>('part', 'message'),
        fc.integer({ min: 1, max: 150 }),
        (parts, seam, length) => {
          const found = find(parts, seam, Infinity)
          expect(find(parts, seam, length)).toBe(found)
          expect(found.split('|')).toHaveLength(parts.length)
        },
      ),
      { numRuns: runs, seed },
    )
    console.log(`values in parts: seed ${seed}`)
  },
)
