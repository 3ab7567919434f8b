import { expect, test } from 'vitest'

import { bucketCount, extractFeatures } from './features.ts'
import { readText } from './read-text.ts'

function featuresOf(original: string) {
  const { text, bounds } = readText(original)
  return extractFeatures(text, bounds)
}

test('a text is a vector of length 1, and each bucket is in it once', () => {
  const { buckets, values } = featuresOf('a text with words and words')
  expect(Math.hypot(...values)).toBeCloseTo(1, 5)
  expect(new Set(buckets).size).toBe(buckets.length)
  expect(Math.max(...buckets)).toBeLessThan(bucketCount)
})

test('what was counted for one text is not counted for the next', () => {
  const alone = featuresOf('the second text')
  featuresOf('a first text of other words '.repeat(500))
  expect(featuresOf('the second text')).toEqual(alone)
})

test('upper case, invisible characters and compatible letters change nothing', () => {
  expect(featuresOf('Ａ Te\u200bxt')).toEqual(featuresOf('a text'))
})

test('the order of words matters, and no word has no features', () => {
  expect(featuresOf('dog bites man')).not.toEqual(featuresOf('man bites dog'))
  expect(featuresOf('?!').buckets).toHaveLength(0)
})

test('the buckets are those that the weights were trained with', () => {
  expect([...featuresOf('ab c').buckets]).toMatchInlineSnapshot(`
    [
      89850,
      173668,
      116503,
      135102,
      203239,
      196156,
      190,
      252416,
    ]
  `)
})
