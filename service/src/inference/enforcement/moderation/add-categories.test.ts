import { expect, test } from 'vitest'

import { endingsOf } from '#inference/enforcement/testing/endings-of.ts'
import { ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'

import { addCategories } from './moderation.ts'

test('the atoms of categories are none of those that rules ask for', () => {
  const own = endingsOf(ruleSetOf(['score("hate") >= 0.5']))
  const { rules } = addCategories(own, ['self-harm', 'sexual/minors'])
  expect(rules.map(({ formula }) => formula)).toEqual([
    { kind: 'score', atom: 0 },
    { kind: 'score', atom: 1 },
    { kind: 'score', atom: 2 },
  ])
})
