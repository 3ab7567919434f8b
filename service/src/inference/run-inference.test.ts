import { expect, test } from 'vitest'

import type { Piece, Receipt } from '#formats/answer.ts'
import { ApiError } from '#platform/api-error.ts'
import { anonymousPolicies } from '#policy-gateway/in-force.ts'

import type { InferenceCall } from './inference-call.ts'
import { createFindings, type Findings, type Judgement } from './judging/verdicts/judgement.ts'
import type { ModelRequest } from './model-request.ts'
import { answerWith } from './replacing/sent-blocks.ts'
import { runInference, type Steps } from './run-inference.ts'

// The order of the steps, for every way in which policies and credits can end a call.

const blocked = new ApiError('policy_blocked', 'A policy blocks this.')
const unpaid = new ApiError('insufficient_credits', 'There are too few credits.')
const piece = { format: 'messages', frames: [] } as unknown as Piece
const sent = { modelName: 'as sent' } as ModelRequest
const changed = { modelName: 'as changed', estimate: { tokens: 7 } } as ModelRequest

function judgementOf(members: Partial<Judgement> = {}): Judgement {
  return {
    request: sent,
    refusal: null,
    ...createFindings(),
    settle: async () => undefined,
    guard: (pieces) => pieces,
    ...members,
  }
}

type Log = {
  taken: string[]
  refusals: { error: unknown; findings: Findings | null }[]
  failures: unknown[]
  requests: ModelRequest[]
  inputs: number[]
}

/** Steps that write down when they are taken; those that are given do more than that. */
function fakeSteps(judgement: Judgement, given: Partial<Steps> = {}) {
  const log: Log = { taken: [], refusals: [], failures: [], requests: [], inputs: [] }
  const disposable = (name: string) => ({
    [Symbol.asyncDispose]: async () => void log.taken.push(`${name} ended`),
  })
  const bill = {
    settle: async () => {
      log.taken.push('settle')
      return {} as Receipt
    },
    noteFailure(error: unknown) {
      log.failures.push(error)
      return error
    },
    ...disposable('bill'),
  }
  const steps: Steps = {
    openMeter: () => ({ noteInput: (tokens: number) => void log.inputs.push(tokens) }) as never,
    admit: async () => ({ settle: async () => undefined, ...disposable('slot') }),
    openRecord: () => ({ finish: async () => undefined, ...disposable('record') }),
    judgeRequest: async () => judgement as never,
    reserve: async () => bill,
    recordRefusal: async (_, error, findings) => void log.refusals.push({ error, findings }),
    settleVerdicts: async () => undefined,
    async *callModel(_, request) {
      log.requests.push(request)
      yield piece
    },
    guardAnswer: (_, { guard }, pieces) => guard(pieces),
    ...given,
  }
  const watched = Object.entries(steps).map(([name, step]) => [
    name,
    (...args: unknown[]) => {
      log.taken.push(name)
      return (step as (...args: unknown[]) => unknown)(...args)
    },
  ])
  return { log, steps: Object.fromEntries(watched) as Steps }
}

const call = {
  endpoint: { permission: null },
  principal: {},
  policies: anonymousPolicies,
  parsed: { ok: true, request: sent },
  onDecided: () => undefined,
} as unknown as InferenceCall

/** Runs a call to its end and returns what its caller gets. */
async function run(steps: Steps, of = { ...call }): Promise<unknown[]> {
  const parts: unknown[] = []
  try {
    for await (const part of runInference(steps, of)) parts.push(part)
  } catch (error) {
    parts.push(error)
  }
  return parts
}

const before = ['openMeter', 'admit', 'openRecord']
const after = ['record ended', 'slot ended']
const billed = [...before, 'judgeRequest', 'reserve', 'settleVerdicts']

test('a call that is allowed takes every step, the exact rules before the hold', async () => {
  const { steps, log } = fakeSteps(judgementOf({ request: changed }))
  const ended = { ...call }
  expect(await run(steps, ended)).toEqual([{ piece }, { receipt: {} }])
  const answered = ['callModel', 'guardAnswer', 'settle', 'bill ended']
  expect(log.taken).toEqual([...billed, ...answered, ...after])
  expect(log.requests).toEqual([changed])
  // Everything else that is said of the call is said of what was sent.
  expect([ended.parsed, log.inputs]).toEqual([{ ok: true, request: changed }, [7]])
  expect([log.refusals, log.failures]).toEqual([[], []])
})

test('a request that a rule blocks is recorded with what matched, and nothing is held', async () => {
  const judgement = judgementOf({ refusal: blocked })
  const { steps, log } = fakeSteps(judgement)
  expect(await run(steps)).toEqual([blocked])
  expect(log.taken).toEqual([...before, 'judgeRequest', 'recordRefusal', ...after])
  expect(log.refusals).toEqual([{ error: blocked, findings: judgement }])
})

const replacement = { text: 'Other words.', model: 'small', tokens: 9 }

test('a request that is answered with other words reaches no model', async () => {
  const judgement = judgementOf({ replace: async () => replacement })
  const { steps, log } = fakeSteps(judgement, { settleVerdicts: () => Promise.reject(blocked) })
  expect(await run(steps)).toEqual([{ piece: answerWith('Other words.') }, { receipt: {} }])
  expect(log.taken).toEqual([...billed, 'settle', 'bill ended', ...after])
  expect(log.failures).toEqual([])
})

test('where no other words can be had, the request is refused', async () => {
  const settleVerdicts = () => Promise.reject(blocked)
  const judgement = judgementOf({ replace: async () => null })
  const { steps, log } = fakeSteps(judgement, { settleVerdicts })
  expect(await run(steps)).toEqual([blocked])
  expect(log.failures).toEqual([blocked])
})

test('a block by an exact rule wins over too few credits', async () => {
  const { steps } = fakeSteps(judgementOf({ refusal: blocked }), {
    reserve: () => Promise.reject(unpaid),
  })
  expect(await run(steps)).toEqual([blocked])
})

test('after a 402 no verdict is asked for that costs something; what matched before is recorded', async () => {
  const judgement = judgementOf()
  const { steps, log } = fakeSteps(judgement, { reserve: () => Promise.reject(unpaid) })
  expect(await run(steps)).toEqual([unpaid])
  expect(log.taken).toEqual([...before, 'judgeRequest', 'reserve', 'recordRefusal', ...after])
  expect(log.refusals).toEqual([{ error: unpaid, findings: judgement }])
})

test('a body that cannot be read is refused before it is judged', async () => {
  const error = new ApiError('invalid_json', 'The body is empty.')
  const { steps, log } = fakeSteps(judgementOf())
  expect(await run(steps, { ...call, parsed: { ok: false, error } })).toEqual([error])
  expect(log.taken).toEqual([...before, 'recordRefusal', ...after])
  expect(log.refusals).toEqual([{ error, findings: null }])
})

test('a request that cannot be judged is refused, and recorded with what had matched by then', async () => {
  const unjudged = new ApiError('policy_evaluation_unavailable', 'Later.')
  const { steps, log } = fakeSteps(judgementOf(), {
    async judgeRequest(_call, _request, findings) {
      findings.unevaluated.push('pol_1')
      throw unjudged
    },
  })
  expect(await run(steps)).toEqual([unjudged])
  const findings = { ...createFindings(), unevaluated: ['pol_1'] }
  expect(log.refusals).toEqual([{ error: unjudged, findings }])
})

test('a request that a verdict blocks after the hold is not sent, and its bill knows why', async () => {
  const { steps, log } = fakeSteps(judgementOf(), {
    settleVerdicts: () => Promise.reject(blocked),
  })
  expect(await run(steps)).toEqual([blocked])
  expect(log.taken).toEqual([...billed, 'bill ended', ...after])
  expect([log.refusals, log.failures]).toEqual([[], [blocked]])
})

test('an answer that its guard ends is billed, and its bill knows why', async () => {
  async function* guard(pieces: AsyncIterable<Piece>) {
    for await (const each of pieces) {
      yield each
      throw blocked
    }
  }
  const { steps, log } = fakeSteps(judgementOf({ guard }))
  expect(await run(steps)).toEqual([{ piece }, blocked])
  expect(log.taken).toEqual([...billed, 'callModel', 'guardAnswer', 'bill ended', ...after])
  expect([log.refusals, log.failures]).toEqual([[], [blocked]])
})
