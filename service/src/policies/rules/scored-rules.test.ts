import { expect, test } from 'vitest'

import { finish } from '#platform/steps/steps.ts'
import {
  answerFacts,
  numbered,
  patternEngine,
  someAsker,
} from '#policies/guard/testing/rule-set-of.ts'

import { compileRule } from './rule-program.ts'
import { evaluateInSlices, RuleSet } from './rule-set.ts'
import type { SetRule } from './set-rule.ts'

const setOf = (expression: string, mode: SetRule['mode'] = 'enforcing') => {
  const rule = compileRule(`cel: ${expression}`, patternEngine)
  if (typeof rule === 'string') throw new Error(rule)
  const policy = { policyId: 'p', policyName: 'P', version: 1, threshold: 5000 }
  return new RuleSet([{ ...policy, mode, rule }], patternEngine)
}

const scores = new Map([
  ['hate', 0.7],
  ['illicit', 0.2],
  ['self-harm', 0.4],
])

test.each([
  ['score("hate") > 0.6', 10_000],
  ['score("hate") > 0.7', 0],
  ['score("hate") >= 0.7', 10_000],
  ['score("hate")', 7000],
  ['score("hate") + score("illicit")', 9000],
  ['score("self-harm/intent")', 4000],
  ['score("hate") > 0.6 && text.contains("some")', 10_000],
  ['score("hate") > 0.6 && text.contains("other")', 0],
  ['score("hate") > 0.6 && system.contains("kind")', 10_000],
  ['["a"].exists(scores, score("hate") > 0.6 && scores == "a")', 10_000],
  ['score("hate") > 0.6 ? 6000 : 1', 6000],
])('%s scores %j', async (expression, score) => {
  const open = setOf(expression).openTexts(answerFacts, ['some text'])
  const outcomes = await evaluateInSlices(open, someAsker, scores)
  expect(numbered(outcomes)).toEqual([{ index: 0, score, isMatch: score >= 5000, isError: false }])
})

test('a rule knows the categories whose scores it reads', () => {
  const set = setOf('score("hate") > 0.5 || score("self-harm/intent") > 0.5')
  expect([...set.categories]).toEqual(['hate', 'self-harm'])
})

test('without a score it is unknown whether a rule matches', async () => {
  const expression = 'score("sexual") < 0.5'
  const outcomeOf = (mode: SetRule['mode']) =>
    evaluateInSlices(setOf(expression, mode).openTexts(answerFacts, []), someAsker, scores)
  expect(await outcomeOf('enforcing')).toMatchObject([{ isError: true, isUnscored: true }])
  expect(await outcomeOf('monitoring')).toMatchObject([{ isMatch: false, isUnscored: true }])
})

test('rules that read scores are not among the exact ones', () => {
  const open = setOf('score("hate") > 0.5').openTexts(answerFacts, ['some text'])
  expect(finish(open.exact())).toEqual([])
  expect(finish(open.scored(scores))).toHaveLength(1)
})

test('what 0 reaches is decided at the end, where an empty answer has the score 0', () => {
  const formulaOf = (expression: string) => setOf(expression).openAnswer(answerFacts).rules[0]
  expect(formulaOf('score("hate") >= 0.0')).toMatchObject({ formula: null })
  expect(formulaOf('score("hate") > 0.0')).toMatchObject({ formula: { kind: 'score', atom: 0 } })
})
