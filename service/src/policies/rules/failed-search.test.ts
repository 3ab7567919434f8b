import { expect, test } from 'vitest'

import { answerFacts, patternEngine, someAsker } from '#policies/guard/testing/rule-set-of.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import { compileRule } from './rule-program.ts'
import { evaluateInSlices, RuleSet } from './rule-set.ts'
import type { SetRule } from './set-rule.ts'

// What follows where no thread takes the search for a pattern without a widest match.

const busy = new Error('no thread is free')
const fail = () => Promise.reject(busy)
const engineWith = (isNeeded: boolean): PatternEngine => ({
  ...patternEngine,
  elsewhere: {
    search: () => ({ isNeeded, hits: fail, findFirst: fail, findAll: fail }),
    learnCost: () => undefined,
  },
})
const long = `a secret ${'word '.repeat(2000)}`

function ruleOf(mode: SetRule['mode'], expression: string): SetRule {
  const rule = compileRule(`cel: ${expression}`, patternEngine)
  if (typeof rule === 'string') throw new Error(rule)
  return { policyId: expression, policyName: 'P', version: 1, mode, threshold: 5000, rule }
}

const evaluateWith = (engine: PatternEngine, text: string, rules: SetRule[]) =>
  evaluateInSlices(new RuleSet(rules, engine).openTexts(answerFacts, [text]), someAsker)
const evaluate = (...rules: SetRule[]) => evaluateWith(engineWith(false), long, rules)

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

test('patterns that are slow together fail alike in short texts', async () => {
  const [watching, wanting] = (['monitoring', 'enforcing'] as const).map((mode) =>
    ruleOf(mode, 'text.matches("a.b")'),
  )
  const contains = ruleOf('enforcing', 'text.contains("secret")')
  const outcomes = await evaluateWith(engineWith(true), 'a secret', [watching!, contains])
  expect(outcomes).toMatchObject([{ isError: true }, { isMatch: true, isError: false }])
  const wanted = evaluateWith(engineWith(true), 'a secret', [watching!, wanting!])
  await expect(wanted).rejects.toBe(busy)
})
