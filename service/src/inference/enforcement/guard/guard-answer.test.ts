import { expect, test } from 'vitest'

import { upstreamFormats } from '#formats/formats.ts'
import { plainSource } from '#formats/testing/meaning-of.ts'
import { createFindings } from '#inference/enforcement/findings.ts'
import { addCategories } from '#inference/enforcement/moderation/moderation.ts'
import { unjudgedAnswer } from '#inference/enforcement/plain-language/judge-answer.ts'
import { isBeyondLimits } from '#inference/enforcement/refusals.ts'
import { endingsOf } from '#inference/enforcement/testing/endings-of.ts'
import { ScorerFailure } from '#moderation/scorer.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { answerFacts, ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'
import { oneScorer, scoreEach } from '#policies/guard/testing/score-each.ts'
import { ScorerUnavailable } from '#policies/guard/window-queue.ts'

import { guardAnswer } from './guard-answer.ts'

async function* plainAnswer(text: string) {
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'their-model' }
  const usage = { input_tokens: 10, output_tokens: 5 }
  const body = { ...head, content: [{ type: 'text', text }], stop_reason: 'end_turn', usage }
  const frame = upstreamFormats.get('messages')?.readPlain?.(plainSource(body))
  if (frame) yield { format: 'messages' as const, frames: [frame], isPlain: true }
}

const unscored = {
  formats: upstreamFormats,
  steadyNow: () => new Date(0),
  cancellation: new Cancellation(),
  logProblem: () => {},
  facts: answerFacts,
  owner: 'org_1',
  scored: { scorers: oneScorer(scoreEach(async () => [])), highest: () => new Map() },
  judged: unjudgedAnswer,
}

test.each([
  ['is too large', 'x'.repeat(1024 * 1024 + 1), true],
  ['is small enough', 'x'.repeat(1024), false],
])(
  'an answer that %s for a rule that needs all of it ends as beyond the limits',
  async (_, text, isBeyond) => {
    const set = ruleSetOf(['!text.contains("x")'])
    const findings = createFindings()
    const rules = endingsOf(set)
    const guarding = { ...unscored, set, rules, findings }
    const failure = await guardAnswer(plainAnswer(text), guarding)
      .next()
      .catch((error: unknown) => error)
    expect(isBeyondLimits(failure)).toBe(isBeyond)
  },
)

test.each([
  ['text.contains("bad") ? 7000 : 0', 7000],
  ['text.size() * 900', 7200],
  ['!text.contains("good")', 10_000],
  ['text.contains("bad")', 10_000],
])('a blocked answer is reported with the score of its rule: %s', async (rule, score) => {
  const set = ruleSetOf([rule])
  const findings = createFindings()
  const rules = endingsOf(set)
  const guarded = guardAnswer(plainAnswer('so bad !'), { ...unscored, set, rules, findings })
  await expect(guarded.next()).rejects.toMatchObject({ code: 'policy_blocked' })
  expect(findings.matches).toMatchObject([{ direction: 'response', score, threshold: 5000 }])
})

const image = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AAAA' }
const said = { type: 'message', content: [{ type: 'output_text', text: 'Hi.', annotations: [] }] }

test.each([
  ['an image', [said, image], true],
  ['only text', [said], false],
])('the event says whether an answer has parts that nothing scores: %s', async (_, output, has) => {
  const set = ruleSetOf([])
  const findings = createFindings()
  const body = { id: 'resp_1', object: 'response', status: 'completed', output }
  const frame = upstreamFormats.get('responses')?.readPlain?.(plainSource(body))
  const pieces = (async function* () {
    if (frame) yield { format: 'responses' as const, frames: [frame], isPlain: true }
  })()
  const rules = addCategories(endingsOf(set), ['self-harm'])
  const guarding = { ...unscored, set, rules, findings }
  for await (const piece of guardAnswer(pieces, guarding)) expect(piece.frames).toHaveLength(1)
  expect(findings.hasUnscoredParts).toBe(has)
})

test.each([
  ['an outage of the scorer', new ScorerFailure('timeout', 'It is late.'), []],
  ['no answer of a scorer', new ScorerUnavailable('no scorer has answered'), []],
  ['a mistake', new TypeError('x is undefined'), ['answer_not_scored']],
])('an answer that cannot be scored ends; what is logged of %s', async (_, error, expected) => {
  const set = ruleSetOf([])
  const logged: string[] = []
  const guarded = guardAnswer(plainAnswer('Some words.'), {
    formats: upstreamFormats,
    steadyNow: () => new Date(0),
    cancellation: new Cancellation(),
    logProblem: (code) => logged.push(code),
    owner: 'org_1',
    facts: answerFacts,
    scored: { scorers: oneScorer(() => Promise.reject(error)), highest: () => new Map() },
    judged: unjudgedAnswer,
    set,
    rules: addCategories(endingsOf(set), ['self-harm']),
    findings: createFindings(),
  })
  await expect(guarded.next()).rejects.toMatchObject({ code: 'policy_evaluation_unavailable' })
  expect(logged).toEqual(expected)
})
