import { expect, test } from 'vitest'

import { readRequestTexts } from '#formats/texts/request-texts.ts'
import { emptyTurn } from '#formats/turn.ts'
import type { Checked } from '#inference/enforcement/check.ts'
import { createFindings } from '#inference/enforcement/findings.ts'
import { type Judge, JudgeFailure } from '#moderation/judge/judge.ts'
import { finish } from '#platform/steps/steps.ts'
import { answerFacts, patternEngine } from '#policies/guard/testing/rule-set-of.ts'
import { compileRule } from '#policies/rules/rule-program.ts'
import { RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

import { plainLanguage } from './plain-language.ts'

function ruleOf(text: string, policyId: string): SetRule {
  const rule = compileRule(text, patternEngine)
  if (typeof rule === 'string') throw new Error(rule)
  return { policyId, policyName: policyId, version: 1, threshold: 5000, mode: 'enforcing', rule }
}
const gated = ruleOf('when: score("hate") > 0.5\nNobody may shout.', 'gated')
const plain = ruleOf('Nobody may be rude.', 'plain')

/** How a request ends of which the judge says this; no scorer has seen it. */
async function judge(rules: readonly SetRule[], reply: Record<string, number> | JudgeFailure) {
  const set = new RuleSet(rules, patternEngine)
  const facts = { ...answerFacts, direction: 'request' as const }
  const texts = finish(
    readRequestTexts({
      ...emptyTurn,
      messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
    }),
  )
  const model: Judge = {
    id: 'judge',
    calibrationVersion: 'none',
    isPausing: () => false,
    async judge() {
      if (reply instanceof JudgeFailure) throw reply
      return new Map(Object.entries(reply))
    },
  }
  const callJudge = {
    judge: model,
    onError: 'refuse' as const,
    organizationId: 'org_1',
    onDegraded: () => {},
  }
  const checked: Checked = {
    findings: createFindings(),
    set,
    texts,
    facts,
    open: set.openTexts(facts, texts.text),
    moderated: { scores: new Map() } as Partial<Checked['moderated']> as Checked['moderated'],
    callJudge,
    history: null,
    guardrails: null,
    asker: { owner: 'org_1', signal: new AbortController().signal },
  }
  const sent = { body: {}, texts, replaceWith: async () => undefined }
  const refusal = await plainLanguage.afterHold?.(checked, texts, sent)
  return refusal?.code ?? 'allowed'
}

test('a match blocks, also where the gate of another rule is not known', async () => {
  expect(await judge([gated, plain], { plain: 9000 })).toBe('policy_blocked')
  expect(await judge([gated, plain], { plain: 10 })).toBe('policy_evaluation_unavailable')
  expect(await judge([plain], { plain: 10 })).toBe('allowed')
})

test('a match blocks, also where the judge fails at another rule', async () => {
  const failure = (plainScore: number) =>
    new JudgeFailure('late', 'It is late.', { atLeast: new Map([['plain', plainScore]]) })
  const other = ruleOf('Nobody may whisper.', 'other')
  expect(await judge([other, plain], failure(9000))).toBe('policy_blocked')
  expect(await judge([other, plain], failure(10))).toBe('policy_evaluation_unavailable')
})
