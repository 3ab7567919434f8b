import { expect, test } from 'vitest'

import type { Piece, Receipt } from '#formats/answer.ts'
import { ApiError } from '#platform/api-error.ts'
import { anonymousPolicies } from '#policies-in-force/in-force.ts'

import type { CallChecks } from './enforcement/call-checks.ts'
import { createFindings, type Findings } from './enforcement/findings.ts'
import type { InferenceCall } from './inference-call.ts'
import type { ModelRequest } from './model-request.ts'
import { runInference, type CallSteps } from './run-inference.ts'

// The order of the steps, for every way in which policies and credits can end a call.

const blocked = new ApiError('policy_blocked', 'A policy blocks this.')
const unpaid = new ApiError('insufficient_credits', 'There are too few credits.')
const piece = { format: 'messages', frames: [] } as unknown as Piece
const sent = { modelName: 'as sent' } as ModelRequest
const changed = { modelName: 'as changed', estimate: { tokens: 7 } } as ModelRequest

const checksOf = (members: Partial<CallChecks> = {}): CallChecks => ({
  request: sent,
  growthMost: 0,
  findings: createFindings(),
  beforeHold: async () => undefined,
  afterHold: async () => undefined,
  guard: (callModel) => callModel(),
  ...members,
})

const refuse = () => Promise.reject(blocked)

type Log = {
  taken: string[]
  refusals: { error: unknown; findings: Findings | null }[]
  failures: unknown[]
  requests: ModelRequest[]
  inputs: number[]
}

/** Steps that write down when they are taken; those that are given do more than that. */
function fakeSteps(checks: CallChecks, given: Partial<CallSteps> = {}) {
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
  const steps: CallSteps = {
    openMeter: () => ({ noteInput: (tokens: number) => void log.inputs.push(tokens) }) as never,
    admit: async () => ({ settle: async () => undefined, ...disposable('slot') }),
    openRecord: () => ({ finish: async () => undefined, ...disposable('record') }),
    openChecks: async () => watch(checks) as never,
    reserve: async () => bill,
    recordRefusal: async (_, error, findings) => void log.refusals.push({ error, findings }),
    async *callModel(_, request) {
      log.requests.push(request)
      yield piece
    },
    ...given,
  }
  /** The same, with functions that write down when they are called. */
  function watch<Watched extends object>(all: Watched): Watched {
    const watched = Object.entries(all).map(([name, member]: [string, unknown]) => [
      name,
      typeof member === 'function'
        ? (...args: unknown[]) => {
            log.taken.push(name)
            return (member as (...args: unknown[]) => unknown)(...args)
          }
        : member,
    ])
    return Object.fromEntries(watched) as Watched
  }
  return { log, steps: watch(steps) }
}

const call = {
  endpoint: { permission: null },
  principal: {},
  policies: anonymousPolicies,
  parsed: { ok: true, request: sent },
  onDecided: () => undefined,
} as unknown as InferenceCall

/** Runs a call to its end and returns what its caller gets. */
async function run(steps: CallSteps, of = { ...call }): Promise<unknown[]> {
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
const billed = [...before, 'openChecks', 'beforeHold', 'reserve', 'afterHold']

test('a call that is allowed takes every step, the exact rules before the hold', async () => {
  const { steps, log } = fakeSteps(checksOf({ request: changed }))
  const ended = { ...call }
  expect(await run(steps, ended)).toEqual([{ piece }, { receipt: {} }])
  const answered = ['guard', 'callModel', 'settle', 'bill ended']
  expect(log.taken).toEqual([...billed, ...answered, ...after])
  expect(log.requests).toEqual([changed])
  // Everything else that is said of the call is said of what was sent.
  expect([ended.parsed, log.inputs]).toEqual([{ ok: true, request: changed }, [7]])
  expect([log.refusals, log.failures]).toEqual([[], []])
})

test('what is rewritten after the hold is what is sent and metered', async () => {
  let request = sent
  const checks: CallChecks = {
    ...checksOf(),
    get request() {
      return request
    },
    async afterHold() {
      request = changed
    },
  }
  const { steps, log } = fakeSteps(checks, { openChecks: async () => checks as never })
  const ended = { ...call }
  await run(steps, ended)
  expect(log.requests).toEqual([changed])
  expect([ended.parsed, log.inputs]).toEqual([{ ok: true, request: changed }, [7]])
})

test('a request that a rule blocks is recorded with what matched, and nothing is held', async () => {
  const { steps, log } = fakeSteps(checksOf(), {
    async openChecks(_call, _request, findings) {
      findings.unevaluated.push('pol_1')
      return checksOf({ beforeHold: refuse }) as never
    },
  })
  expect(await run(steps)).toEqual([blocked])
  expect(log.taken).toEqual([...before, 'openChecks', 'recordRefusal', ...after])
  const findings = { ...createFindings(), unevaluated: ['pol_1'] }
  expect(log.refusals).toEqual([{ error: blocked, findings }])
})

test('a block by an exact rule wins over too few credits', async () => {
  const { steps } = fakeSteps(checksOf({ beforeHold: refuse }), {
    reserve: () => Promise.reject(unpaid),
  })
  expect(await run(steps)).toEqual([blocked])
})

test('after a 402 no verdict is asked for that costs something; what matched before is recorded', async () => {
  const { steps, log } = fakeSteps(checksOf(), { reserve: () => Promise.reject(unpaid) })
  expect(await run(steps)).toEqual([unpaid])
  expect(log.taken).toEqual([...billed.slice(0, -1), 'recordRefusal', ...after])
  expect(log.refusals).toEqual([{ error: unpaid, findings: createFindings() }])
})

test('a body that cannot be read is refused before it is judged', async () => {
  const error = new ApiError('invalid_json', 'The body is empty.')
  const { steps, log } = fakeSteps(checksOf())
  expect(await run(steps, { ...call, parsed: { ok: false, error } })).toEqual([error])
  expect(log.taken).toEqual([...before, 'recordRefusal', ...after])
  expect(log.refusals).toEqual([{ error, findings: null }])
})

test('a request that cannot be judged is refused, and recorded with what had matched by then', async () => {
  const unjudged = new ApiError('policy_evaluation_unavailable', 'Later.')
  const { steps, log } = fakeSteps(checksOf(), {
    async openChecks(_call, _request, findings) {
      findings.unevaluated.push('pol_1')
      throw unjudged
    },
  })
  expect(await run(steps)).toEqual([unjudged])
  const findings = { ...createFindings(), unevaluated: ['pol_1'] }
  expect(log.refusals).toEqual([{ error: unjudged, findings }])
})

test('a request that a verdict blocks after the hold is not sent, and its bill knows why', async () => {
  const { steps, log } = fakeSteps(checksOf({ afterHold: refuse }))
  expect(await run(steps)).toEqual([blocked])
  expect(log.taken).toEqual([...billed, 'bill ended', ...after])
  expect([log.refusals, log.failures]).toEqual([[], [blocked]])
})

test('an answer that its guard ends is billed, and its bill knows why', async () => {
  async function* guard(callModel: () => AsyncIterable<Piece>) {
    for await (const each of callModel()) {
      yield each
      throw blocked
    }
  }
  const { steps, log } = fakeSteps(checksOf({ guard }))
  expect(await run(steps)).toEqual([{ piece }, blocked])
  expect(log.taken).toEqual([...billed, 'guard', 'callModel', 'bill ended', ...after])
  expect([log.refusals, log.failures]).toEqual([[], [blocked]])
})
