import { expect, test } from 'vitest'

import { readText } from './read-text.ts'
import { countTerms, hashTerm } from './term-count.ts'

const hashOf = (term: string) => {
  const { text, bounds } = readText(term)
  return hashTerm(text, bounds)
}
const terms = new Set(['apple', 'green pear', 'ripe yellow plum'].map((term) => hashOf(term) ?? 0))
const countIn = (original: string) => {
  const { text, bounds } = readText(original)
  return countTerms(terms, text, bounds)
}

test.each([
  ['nothing of the kind', 0],
  ['An apple!', 1],
  ['apple, APPLE and apple', 3],
  ['pineapple apples', 0],
  ['a green pear', 1],
  ['green and pear', 0],
  ['a ripe, yellow plum and an apple', 2],
])('the terms in %j', (text, count) => {
  expect(countIn(text)).toBe(count)
})

test('a term without words, or with more than three, has no hash', () => {
  expect([hashOf('…'), hashOf('one two three four')]).toEqual([undefined, undefined])
})
