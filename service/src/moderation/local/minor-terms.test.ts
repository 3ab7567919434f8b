import { expect, test } from 'vitest'

import { hasMinorTerm } from './minor-terms.ts'
import { readText } from './read-text.ts'
import { minorsScore, sexualScore } from './score-window.ts'

const namesMinor = (original: string) => {
  const { text, bounds } = readText(original)
  return hasMinorTerm(text, bounds)
}

test.each([
  'My child likes music.',
  'Teenagers at school',
  'She is 12 years old.',
  'a twelve-year-old',
  'aged 7',
  'the 9yo',
  'MINORS',
])('%j names a person under eighteen', (text) => {
  expect(namesMinor(text)).toBe(true)
})

test.each(['', 'An adult of 18 years', 'a 42-year-old', '12 apples', 'aged cheese', 'kidney'])(
  '%j names no person under eighteen',
  (text) => {
    expect(namesMinor(text)).toBe(false)
  },
)

test('sexual/minors is the sexual score where a minor is named, otherwise nothing', () => {
  expect(minorsScore(9_000, true)).toBe(9_000)
  expect(minorsScore(9_000, false)).toBe(0)
  expect(minorsScore(0, true)).toBe(0)
})

test('one term stays under the threshold of 6,000, two reach it, and no count exceeds the scale', () => {
  expect([0, 1, 2, 3].map(sexualScore)).toEqual([0, 4_444, 6_154, 7_059])
  expect(sexualScore(1_000_000)).toBeLessThanOrEqual(10_000)
})
