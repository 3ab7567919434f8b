import { expect, test } from 'vitest'

import { didYouMean } from './did-you-mean.ts'

const known = ['list-projects', 'create-project', 'archive-project', 'list-policies', 'name']

test.each([
  ['list-project', 'list-projects'],
  ['create-porject', 'create-project'],
  ['create_project', 'create-project'],
  ['List-Policies', 'list-policies'],
  ['nmae', 'name'],
  ['names', 'name'],
])('%s: did you mean %s?', (word, meant) => expect(didYouMean(word, known)).toBe(meant))

test.each(['make-coffee', 'n', '', 'colour', 'x'.repeat(1000)])('%j is close to nothing', (word) =>
  expect(didYouMean(word, known)).toBeUndefined(),
)

test('the closest one is meant, and the first of equals', () => {
  expect(didYouMean('plan', ['plant', 'plan'])).toBe('plan')
  expect(didYouMean('bat', ['cat', 'hat'])).toBe('cat')
  expect(didYouMean('name', [])).toBeUndefined()
})
