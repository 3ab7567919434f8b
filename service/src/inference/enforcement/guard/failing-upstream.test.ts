import { expect, test } from 'vitest'

import type { Piece } from '#formats/answer.ts'
import { upstreamFormats } from '#formats/formats.ts'
import { createFindings } from '#inference/enforcement/findings.ts'
import { addCategories } from '#inference/enforcement/moderation/moderation.ts'
import { unjudgedAnswer } from '#inference/enforcement/plain-language/judge-answer.ts'
import { endingsOf } from '#inference/enforcement/testing/endings-of.ts'
import type { Upstream } from '#inference/upstreams/catalogue.ts'
import { PieceReader } from '#inference/upstreams/read-pieces.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { StreamedAnswer } from '#platform/calls/streamed-answer.ts'
import { answerFacts, ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'
import { oneScorer, scoreEach } from '#policies/guard/testing/score-each.ts'
import { ScorerUnavailable } from '#policies/guard/window-queue.ts'

import { guardAnswer } from './guard-answer.ts'

// What leaves of an answer whose upstream fails while it is held back.

const upstreamFailure = new Error('the upstream has failed')

/** One frame for each word, and then the failure. */
async function* failingAnswer(words: readonly string[], onFailure: () => void) {
  const answer = new StreamedAnswer()
  answer.onHead(200, {})
  const format = upstreamFormats.get('chat_completions')!
  const reader = new PieceReader(answer, { format, upstream: { secret: null } as Upstream })
  for (const content of words) {
    const choices = [{ index: 0, delta: { content }, finish_reason: null }]
    const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, choices }
    answer.onBytes(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`))
    const piece = await reader.read()
    if (piece) yield piece
  }
  onFailure()
  throw upstreamFailure
}

type Guarding = {
  rules?: string[]
  words?: string[]
  scoreWindow?: (text: string) => Promise<readonly number[]>
  isCancelled?: boolean
}

async function guard({
  rules: expressions = [],
  words = ['some', ' words'],
  scoreWindow = async () => [],
  isCancelled = false,
}: Guarding) {
  const set = ruleSetOf(expressions)
  const categories = ['self-harm'] as const
  const cancellation = new Cancellation()
  const onFailure = () => isCancelled && cancellation.cancel(new Error('the caller has hung up'))
  const left: Piece[] = []
  const guarded = guardAnswer(failingAnswer(words, onFailure), {
    formats: upstreamFormats,
    steadyNow: () => new Date(0),
    cancellation,
    logProblem: () => {},
    facts: answerFacts,
    owner: 'org_1',
    scored: {
      scorers: oneScorer(scoreEach(({ text }) => scoreWindow(text))),
      highest: () => new Map(),
    },
    judged: unjudgedAnswer,
    set,
    rules: addCategories(endingsOf(set), categories),
    findings: createFindings(),
  })
  const error = await (async () => {
    for await (const piece of guarded) left.push(piece)
  })().catch((thrown: unknown) => thrown)
  return { error, frames: left.flatMap(({ frames }) => frames).length }
}

test('what was held back is judged and leaves, and then the failure is thrown', async () => {
  const scored: string[] = []
  const scoreWindow = async (text: string) => {
    scored.push(text)
    return []
  }
  expect(await guard({ scoreWindow })).toEqual({ error: upstreamFailure, frames: 2 })
  expect(scored).toEqual(['some words'])
})

test('what is blocked does not leave, and the block is reported', async () => {
  const scored = await guard({ scoreWindow: async () => [0] })
  expect(scored).toMatchObject({ error: { code: 'moderation_blocked' }, frames: 0 })
  const matched = await guard({ rules: ['text.contains("words")'] })
  expect(matched).toMatchObject({ error: { code: 'policy_blocked' }, frames: 1 })
})

test.each<[string, Guarding]>([
  [
    'that cannot be scored',
    { scoreWindow: () => Promise.reject(new ScorerUnavailable('no answer')) },
  ],
  ['whose rule needs all of it', { rules: ['!text.contains("please")'] }],
  ['that nobody waits for', { isCancelled: true }],
  ['without text, which a rule on its end would block', { rules: ['text.size() >= 0'], words: [] }],
])('nothing leaves of an answer %s, and the failure is thrown', async (_, guarding) => {
  expect(await guard(guarding)).toEqual({ error: upstreamFailure, frames: 0 })
})
