import { expect, test } from 'vitest'

import { answerRulesOf } from '#policies/guard/testing/answer-rules-of.ts'

import { addCategories } from './add-categories.ts'

test('the atoms of categories are none of those that rules ask for', () => {
  const own = {
    ...answerRulesOf({ formulas: [{ kind: 'score', atom: 0 }] }),
    scores: [{ kind: 'score' as const, category: 'hate' as const, above: 5000, isInclusive: true }],
  }
  const { rules } = addCategories(own, ['self-harm', 'sexual/minors'], 1)
  expect(rules.map(({ index, formula }) => ({ index, formula }))).toEqual([
    { index: 0, formula: { kind: 'score', atom: 0 } },
    { index: 1, formula: { kind: 'score', atom: 1 } },
    { index: 2, formula: { kind: 'score', atom: 2 } },
  ])
})

test.each([
  ['none', 288],
  [12, 288],
  [410, 410],
  ['full', 'full'],
] as const)('rules that hold %s, together with windows, hold %s', (hold, expected) => {
  const own = { ...answerRulesOf({}), hold }
  expect(addCategories(own, ['self-harm'], 0).hold).toBe(expected)
})
