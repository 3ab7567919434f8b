import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, test, vi } from 'vitest'

import { type AnswerEvent, noUsage, type Piece, type StopReason } from '#formats/answer.ts'
import type { Catalogue, CatalogueModel } from '#inference/upstreams/catalogue.ts'
import type { ModelCall } from '#inference/upstreams/model-call.ts'
import { ApiError } from '#platform/api-error.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { ClientGone } from '#platform/client-gone.ts'
import { systemClock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { createMetrics } from '#platform/metrics.ts'

import { createReplace } from './create-replace.ts'
import type { Blocked, ReplacedCall } from './replacement.ts'

const model = {
  id: 'small',
  maxOutputTokens: 10_000,
  canAnswerPlainly: true,
} as unknown as CatalogueModel

const catalogue = {
  find: (name: string) => (name === model.id ? model : undefined),
} as Partial<Catalogue> as Catalogue

const blocked: Blocked = {
  action: 'rewrite',
  direction: 'response',
  text: 'Something hateful.',
  categories: ['hate'],
  terms: [],
}

const source = { event: '', data: '', bytes: Buffer.alloc(0), json: {} }

type Said = { text?: string; reason?: StopReason; outputTokens?: number }

/** What a rewriter answers that says this. */
function answerOf({ text = 'Something kind.', reason = 'end', outputTokens = 5 }: Said): Piece {
  const events: AnswerEvent[] = [
    { type: 'started', id: '', model: '', usage: noUsage },
    { type: 'block_started', index: 0, block: { type: 'reasoning' } },
    { type: 'block_delta', index: 0, text: 'Let me think of something hateful.' },
    { type: 'block_ended', index: 0 },
    { type: 'block_started', index: 1, block: { type: 'text' } },
    { type: 'block_delta', index: 1, text },
    { type: 'block_ended', index: 1 },
    {
      type: 'finished',
      reason,
      stopSequence: null,
      usage: { ...noUsage, inputTokens: 300, outputTokens },
    },
  ]
  return { format: 'messages', frames: [{ events, source }] }
}

/** No test is late because the machine is slow. */
const hour = 3_600_000

type Given = {
  said?: Said
  /** Instead of an answer. */
  answer?: (call: ModelCall) => AsyncIterable<Piece>
  rewriterModel?: string | null
  judge?: ReplacedCall['judge']
  isOverLimit?: boolean
  deadlineMs?: number
}

function prepare({
  said = {},
  answer,
  rewriterModel = model.id,
  judge,
  isOverLimit = false,
  deadlineMs = hour,
}: Given = {}) {
  const metrics = createMetrics()
  const problem = vi.fn<Log['problem']>()
  const calls: ModelCall[] = []
  async function* callModel(call: ModelCall) {
    calls.push(call)
    for await (const piece of answer?.(call) ?? [answerOf(said)]) {
      call.onPiece(piece)
      yield piece
    }
  }
  const replace = createReplace({
    callModel,
    catalogue: () => catalogue,
    moderation: () => ({ settings: { rewriterModel } }),
    counting: { countText: async (text) => text.length },
    metrics,
    log: { problem } as Partial<Log> as Log,
    steadyNow: systemClock,
    deadlineMs,
  })
  const cancellation = new Cancellation()
  const call: ReplacedCall = {
    organizationId: 'org_1',
    cancellation,
    questions: {
      begin: async () => {
        if (isOverLimit) throw new Error('too many')
      },
    },
    judge: judge ?? ((pieces) => pieces),
  }
  const valuesOf = async (name: 'replacements' | 'replacementTokens') => {
    const { values } = await metrics[name].get()
    return values.map(({ labels, value }) => [...Object.values(labels), value])
  }
  return {
    replace,
    call,
    calls,
    cancellation,
    problem,
    valuesOf,
    ask: () => replace(blocked, call),
  }
}

/** An upstream that says nothing until it is given up. */
async function* silent({ cancellation }: ModelCall): AsyncGenerator<Piece> {
  const given = Promise.withResolvers<Piece>()
  cancellation.add({ cancel: given.reject })
  yield await given.promise
}

/** A guard that lets nothing leave. */
async function* nothing(): AsyncGenerator<Piece> {
  yield* []
}

const failWith = (code: 'overloaded' | 'moderation_blocked') =>
  async function* (): AsyncGenerator<Piece> {
    yield await Promise.reject(new ApiError(code, 'It fails.'))
  }

test('the text of the named model is the replacement, and its tokens are counted', async () => {
  const { ask, calls, valuesOf } = prepare({ said: { text: ' Something kind.\n' } })
  expect(await ask()).toEqual({ text: 'Something kind.', model: 'small', tokens: 305 })
  expect(calls).toMatchObject([{ model, callerFormat: null, headers: {}, maxOutputTokens: 400 }])
  expect(await valuesOf('replacements')).toEqual([['rewrite', 'replaced', 1]])
  expect(await valuesOf('replacementTokens')).toEqual([
    ['input', 300],
    ['output', 5],
  ])
})

test('the replacement is judged as one text before it is returned', async () => {
  const judged: unknown[] = []
  const { ask } = prepare({
    async *judge(pieces) {
      for await (const piece of pieces) {
        judged.push(piece.frames.map(({ source: { json } }) => json['content']))
        yield piece
      }
    },
  })
  await ask()
  expect(judged).toEqual([[[{ type: 'text', text: 'Something kind.' }]]])
})

test.each<[string, Given]>([
  ['unconfigured', { rewriterModel: null }],
  ['unconfigured', { rewriterModel: 'unknown' }],
  ['over_limit', { isOverLimit: true }],
  ['late', { answer: silent, deadlineMs: 20 }],
  ['failed', { answer: failWith('overloaded') }],
  ['unusable', { said: { text: ' \n' } }],
  ['unusable', { said: { reason: 'max_tokens' } }],
  ['unusable', { said: { reason: 'refusal' } }],
  ['unusable', { said: { reason: 'tool_call' } }],
  ['unusable', { said: { outputTokens: 401 } }],
  ['unusable', { said: { text: 'a'.repeat(8001) } }],
  ['blocked', { judge: failWith('moderation_blocked') }],
  ['blocked', { judge: () => nothing() }],
])('%s: there is no replacement', async (outcome, given) => {
  const { ask, valuesOf, problem } = prepare(given)
  expect(await ask()).toBeNull()
  expect(await valuesOf('replacements')).toEqual([['rewrite', outcome, 1]])
  const isLogged = !['unusable', 'blocked', 'over_limit'].includes(outcome)
  expect(problem.mock.calls.map(([code]) => code)).toEqual(isLogged ? ['replacement_failed'] : [])
})

test('a caller that hangs up ends the call to the rewriter', async () => {
  const { ask, cancellation, calls, valuesOf, problem } = prepare({ answer: silent })
  const asked = ask()
  await waitUntil(() => calls.length === 1)
  cancellation.cancel(new ClientGone())
  expect(await asked).toBeNull()
  expect(calls[0]?.cancellation.isCancelled).toBe(true)
  expect(await valuesOf('replacements')).toEqual([['rewrite', 'given_up', 1]])
  expect(problem).not.toHaveBeenCalled()
  expect(cancellation.followers).toBe(0)
})

test('16 replacements are written at a time, and 32 more of one organization wait', async () => {
  const { replace, call, calls, cancellation, valuesOf } = prepare({ answer: silent })
  const asked = Array.from({ length: 49 }, () => replace(blocked, call))
  expect(await Promise.race(asked)).toBeNull()
  expect(await valuesOf('replacements')).toEqual([['rewrite', 'overloaded', 1]])
  expect(calls).toHaveLength(16)
  cancellation.cancel(new ClientGone())
  expect(await Promise.all(asked)).toEqual(asked.map(() => null))
  expect(calls).toHaveLength(16)
})
