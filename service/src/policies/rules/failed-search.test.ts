import { expect, test } from 'vitest'

import { answerFacts, patternEngine, someAsker } from '#policies/guard/testing/rule-set-of.ts'

import { compileRule } from './rule-program.ts'
import { evaluateInSlices, RuleSet, type SetRule } from './rule-set.ts'

// What follows where no thread takes the search for a pattern without a widest match.

const busy = new Error('no thread is free')
const engine = { ...patternEngine, searchElsewhere: () => Promise.reject(busy) }
const long = `a secret ${'word '.repeat(2000)}`

function ruleOf(mode: SetRule['mode'], expression: string): SetRule {
  const rule = compileRule(`cel: ${expression}`, engine)
  if (typeof rule === 'string') throw new Error(rule)
  return { policyId: expression, policyName: 'P', version: 1, mode, threshold: 5000, rule }
}

const evaluate = (...rules: SetRule[]) =>
  evaluateInSlices(new RuleSet(rules, engine).openTexts(answerFacts, [long]), someAsker)

test('a monitoring rule that asks for it is not evaluated, and the others are', async () => {
  const outcomes = await evaluate(
    ruleOf('enforcing', 'text.contains("secret")'),
    ruleOf('monitoring', 'text.matches("a.*b")'),
    ruleOf('monitoring', 'text.matches("s.cret")'),
  )
  expect(outcomes).toMatchObject([
    { isMatch: true, isError: false },
    { isMatch: false, isError: true },
    { isMatch: true, isError: false },
  ])
})

test('where an enforcing rule asks for it too, nothing is decided', async () => {
  const [watching, wanting] = (['monitoring', 'enforcing'] as const).map((mode) =>
    ruleOf(mode, 'text.matches("a.*b")'),
  )
  await expect(evaluate(watching!, wanting!)).rejects.toBe(busy)
})
