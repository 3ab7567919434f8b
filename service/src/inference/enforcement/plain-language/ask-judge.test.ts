import { expect, test } from 'vitest'

import { readRequestTexts } from '#formats/texts/request-texts.ts'
import { emptyTurn } from '#formats/turn.ts'
import { type Judge, JudgeFailure, type JudgeFailureKind } from '#moderation/judge/judge.ts'
import { finish } from '#platform/steps/steps.ts'
import { numbered, patternEngine } from '#policies/guard/testing/rule-set-of.ts'
import { compileRule } from '#policies/rules/rule-program.ts'
import { RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

import { judgeRules } from './ask-judge.ts'
import { contentsOfRequest, contextOfAnswer, contextOfRequest } from './judge-texts.ts'

const rule = compileRule('Nobody may be rude.', patternEngine)
if (typeof rule === 'string') throw new Error(rule)
const ruleOf = (policyId: string): SetRule => {
  const policy = { policyId, policyName: policyId, version: 1, threshold: 5000 }
  return { ...policy, mode: 'enforcing', rule }
}
const set = new RuleSet([ruleOf('first'), ruleOf('second')], patternEngine)

type Reply = Record<string, number> | JudgeFailure

/** What the rules are said to be where the judge replies like this to one text after the other. */
async function outcomesOf(replies: readonly Reply[], onError: 'refuse' | 'allow' = 'refuse') {
  let asked = 0
  let isDegraded = false
  const judge: Judge = {
    id: 'judge',
    calibrationVersion: 'none',
    isPausing: () => false,
    async judge() {
      const reply = replies[asked++] ?? {}
      if (reply instanceof JudgeFailure) throw reply
      return new Map(Object.entries(reply))
    },
  }
  const onDegraded = () => {
    isDegraded = true
  }
  const contents = replies.map(() => ({ direction: 'request' as const, context: '', text: 'x' }))
  const outcomes = await judgeRules(
    { judge, onError, organizationId: 'org_1', onDegraded },
    { rules: set.rules.map((each, index) => ({ rule: each, index })), contents },
    new AbortController().signal,
  )
  return { outcomes: numbered(outcomes), isDegraded }
}

const failure = (kind: JudgeFailureKind, atLeast: Record<string, number> = {}) =>
  new JudgeFailure(kind, 'It failed.', { atLeast: new Map(Object.entries(atLeast)) })

test('the highest score of all texts counts', async () => {
  const { outcomes } = await outcomesOf([
    { first: 4999, second: 100 },
    { first: 20, second: 5000 },
  ])
  expect(outcomes).toEqual([
    { index: 0, score: 4999, isMatch: false, isError: false },
    { index: 1, score: 5000, isMatch: true, isError: false },
  ])
})

test('what is known where the judge fails counts, and the rest is not known', async () => {
  const { outcomes, isDegraded } = await outcomesOf([failure('late', { first: 6000, second: 10 })])
  expect(outcomes).toMatchObject([
    { index: 0, score: 6000, isMatch: true },
    { index: 1, isMatch: false, isUnscored: true },
  ])
  expect(isDegraded).toBe(false)
})

test('the operator can let pass what is not known, but not what matches', async () => {
  const { outcomes, isDegraded } = await outcomesOf([failure('late', { first: 6000 })], 'allow')
  expect(outcomes).toMatchObject([{ index: 0, isMatch: true }])
  expect(isDegraded).toBe(true)
})

test.each<JudgeFailureKind>(['unavailable', 'throttled', 'late'])(
  'an outage may let calls pass: %s',
  async (kind) => {
    expect(await outcomesOf([failure(kind)], 'allow')).toEqual({ outcomes: [], isDegraded: true })
    const { outcomes, isDegraded } = await outcomesOf([failure(kind)], 'refuse')
    expect(outcomes).toMatchObject([{ isUnscored: true }, { isUnscored: true }])
    expect(isDegraded).toBe(false)
  },
)

test.each<[string, JudgeFailure]>([
  ['the judge refuses this gateway', failure('misconfigured')],
  ['a text is too long', failure('too_long')],
  ['a text makes the judge talk nonsense', failure('no_verdict')],
  ['there are too many texts here', failure('overloaded')],
  ['many texts leave no time', new JudgeFailure('late', 'It is late.', { mayBeByCaller: true })],
])('nothing passes because %s', async (_, failed) => {
  const { outcomes, isDegraded } = await outcomesOf([failure('late'), failed], 'allow')
  expect(outcomes).toMatchObject([{ isUnscored: true }, { isUnscored: true }])
  expect(isDegraded).toBe(false)
})

test('all that a caller sends is judged, the last message with what was said before', () => {
  const says = (role: 'user' | 'assistant', text: string) => ({
    role,
    parts: [{ type: 'text' as const, text }],
  })
  const texts = finish(
    readRequestTexts({
      ...emptyTurn,
      system: ['Be kind.'],
      messages: [
        says('user', 'Earlier.'),
        says('assistant', 'An answer.'),
        says('user', 'The last  one.'),
      ],
      tools: [{ name: 'A tool.', description: null, parameters: {}, isStrict: null }],
    }),
  )
  expect(contentsOfRequest({ ...texts, context: contextOfRequest(texts) })).toEqual([
    { direction: 'request', context: '', text: 'Be kind. Earlier. A tool.' },
    { direction: 'request', context: 'An answer.', text: 'The last one.' },
  ])
  expect(contextOfAnswer(texts)).toBe('The last one.')
})
