import { expect, test } from 'vitest'

import type { Event } from '#audit/event.ts'
import type { Hold, Settlement } from '#credits/settlement.ts'
import { type AnswerEvent, noUsage, type Piece } from '#formats/answer.ts'
import { JudgeFailure } from '#moderation/judge/judge.ts'
import { ApiError } from '#platform/api-error.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { createMetrics } from '#platform/metrics.ts'
import { ScorerUnavailable } from '#policies/guard/window-queue.ts'

import { openBill, openFreeBill } from './bill.ts'
import { type CallOrigin, type CallEnding, toCallEvent } from './call-event.ts'
import { createFindings } from './enforcement/findings.ts'
import { answerBeyondLimits, answerUnjudged, UnjudgedAnswer } from './enforcement/refusals.ts'
import type { InferenceCall } from './inference-call.ts'
import { createMeter } from './metering/meter.ts'
import type { ModelRequest } from './model-request.ts'
import type { BilledChecks } from './run-inference.ts'
import { answerTooLarge, TotalTimeout } from './upstreams/upstream-failure.ts'

// What is held, charged and reported, for every way in which a call can end.

const price = { input: 3_000_000n, output: 15_000_000n, cachedInput: 0n, cacheWrite: 0n }
const model = {
  id: 'model-1',
  price,
  upstreams: [600_000, 30_000].map((totalTimeoutMs) => ({ upstream: { totalTimeoutMs } })),
}
const asked = {
  model,
  estimate: { tokens: 100, origin: 'local-exact' },
  maxOutputTokens: 10,
  isStreamed: true,
} as unknown as ModelRequest
/** A request that was allowed. */
const judged = (members: Partial<ModelRequest> = {}): BilledChecks => ({
  request: { ...asked, ...members },
  growthMost: 0,
  findings: createFindings(),
})
const request = judged()
const estimated = judged({ estimate: { tokens: 100, origin: 'local-estimate' } as never })

const source = { event: '', data: '', bytes: Buffer.alloc(0), json: {} }
const started: AnswerEvent = {
  type: 'started',
  id: '',
  model: '',
  usage: { ...noUsage, inputTokens: 90 },
}
const said: AnswerEvent = { type: 'block_delta', index: 0, text: 'Hello' }
const finished: AnswerEvent = {
  type: 'finished',
  reason: 'end',
  stopSequence: null,
  usage: { ...noUsage, inputTokens: 90, outputTokens: 4 },
}

const pieceOf = (event: AnswerEvent): Piece => ({
  format: 'messages',
  frames: [{ events: [event], source }],
})

/** A ledger that records its calls and answers as `settled` says. */
function open(
  events: readonly (AnswerEvent | 'left')[],
  settled: { charged?: bigint; isAway?: boolean } = {},
) {
  const holds: Hold[] = []
  const settlements: Settlement[] = []
  const released: string[] = []
  const written: Event[] = []
  const hangingUp = new Cancellation()
  const call = {
    requestId: 'req_1',
    target: 'messages',
    policies: { snapshot: { epoch: 7 } },
    cancellation: hangingUp,
    principal: { organizationId: 'org_1', projectId: 'proj_1', credentialId: 'key_1' },
    freeCaller: {},
  } as unknown as InferenceCall
  const meter = createMeter({
    inputTokens: 100,
    maxOutputTokens: 1000,
    countText: async (text) => text.length,
    hiddenTokensPerSecond: () => 0,
    isHungUp: () => false,
    now: () => new Date(0),
  })
  for (const event of events) {
    if (event === 'left') meter.noteLeft(pieceOf(said))
    else meter.observe(pieceOf(event))
  }
  const deps = {
    credits: {
      reserve: async (hold: Hold) => void holds.push(hold),
      settle: async (settlement: Settlement) => {
        settlements.push(settlement)
        if (settled.isAway) return null
        return { charged: settled.charged ?? settlement.amount, posted: 5000n }
      },
    },
    freeTier: {
      claim: async () => undefined,
      release: async (_: unknown, requestId: string) => void released.push(requestId),
    },
    events: {
      write: async (event: Event) => void written.push(event),
      canTakeMore: () => true,
    },
    toEvent: (origin: CallOrigin, ending: CallEnding) => toCallEvent(origin, ending, new Date(0)),
    metrics: createMetrics(),
    holdGraceMs: 60_000,
  }
  const hangUp = (reason: Error = new Error('hung up')) => hangingUp.cancel(reason)
  return { holds, settlements, released, written, hangUp, call, meter, deps }
}

test('the worst case is held for as long as the call can take, and a minute', async () => {
  const { holds, call, meter, deps } = open([])
  await openBill(call, request, meter, deps)
  expect(holds).toMatchObject([
    { organizationId: 'org_1', id: 'req_1', amount: 450n, expiresInMs: 660_000 },
  ])
  expect(holds[0]?.meta).toMatchObject({ project_id: 'proj_1', key_id: 'key_1', model: 'model-1' })
})

test('an input that is only estimated is held with a tenth more', async () => {
  const { holds, call, meter, deps } = open([])
  await openBill(call, estimated, meter, deps)
  expect(holds[0]?.amount).toBe(480n)
})

test('a call that ends well is charged what the upstream says, once', async () => {
  const { settlements, call, meter, deps } = open([started, said, finished])
  const bill = await openBill(call, request, meter, deps)
  expect(await bill.settle()).toEqual({
    creditsUsed: 330,
    costUsd: 0.000_33,
    remainingCredits: 5000,
    usage: null,
  })
  await bill[Symbol.asyncDispose]()
  expect(settlements).toHaveLength(1)
  expect(settlements[0]).toMatchObject({ id: 'req_1', amount: 330n })
  expect(settlements[0]?.event.header).toMatchObject({ outcome: 'completed', model: 'model-1' })
})

test('the receipt says what was charged, where that is less than the cost', async () => {
  const { call, meter, deps } = open([started, said, finished], { charged: 20n })
  const bill = await openBill(call, request, meter, deps)
  expect(await bill.settle()).toMatchObject({ creditsUsed: 20, costUsd: 0.000_02 })
})

test('no balance is told that is not known', async () => {
  const { call, meter, deps } = open([started, said, finished], { isAway: true })
  const bill = await openBill(call, request, meter, deps)
  expect(await bill.settle()).toMatchObject({ creditsUsed: 330, remainingCredits: null })
})

const endings = [
  ['the upstream failed before it answered', [], false, 0n, 'failed'],
  ['the upstream failed before it said anything', [started], false, 0n, 'failed'],
  ['the upstream failed before anything left', [started, said], false, 0n, 'failed'],
  ['the upstream failed in the middle', [started, said, 'left'], false, 345n, 'cut'],
  ['the caller left before anything came', [], true, 0n, 'cut'],
  ['the caller left before anything was said', [started], true, 270n, 'cut'],
  ['the caller left before anything left', [started, said], true, 345n, 'cut'],
  ['the caller left in the middle', [started, said, 'left'], true, 345n, 'cut'],
] as const

test.for(endings)('%s', async ([, events, hasHungUp, amount, outcome]) => {
  const { settlements, hangUp, call, meter, deps } = open(events)
  const bill = await openBill(call, request, meter, deps)
  if (hasHungUp) hangUp()
  else bill.noteFailure(broken)
  await bill[Symbol.asyncDispose]()
  expect(settlements.map((each) => [each.amount, each.event.header['outcome']])).toEqual([
    [amount, outcome],
  ])
})

const broken = new ApiError('upstream_error', 'The provider failed.')
const late = new ApiError('upstream_timeout', 'The answer took too long.', {
  cause: new TotalTimeout(),
})
const stalled = new ApiError('upstream_timeout', 'The provider stood still.')

test.for([
  ['that its provider breaks costs nothing: its caller gets none of it', broken, 0n, 'failed'],
  ['that takes longer than a call may is paid', late, 345n, 'cut'],
  ['whose provider stands still costs nothing', stalled, 0n, 'failed'],
  ['that is too large is paid', answerTooLarge(), 345n, 'cut'],
  ['that its caller no longer reads is charged', undefined, 345n, 'cut'],
] as const)('a plain answer %s', async ([, failure, amount, outcome]) => {
  const { settlements, call, meter, deps } = open([started, said])
  const bill = await openBill(call, judged({ isStreamed: false }), meter, deps)
  if (failure) bill.noteFailure(failure)
  await bill[Symbol.asyncDispose]()
  expect(settlements.map((each) => [each.amount, each.event.header['outcome']])).toEqual([
    [amount, outcome],
  ])
})

test('a settlement that fails after the call was cut does not hide why it was cut', async () => {
  const { call, meter, deps } = open([started, said])
  const settle = async () => {
    throw new ApiError('dependency_unavailable', 'The credit ledger cannot be reached.')
  }
  const bill = await openBill(call, request, meter, {
    ...deps,
    credits: { ...deps.credits, settle },
  })
  await expect(bill[Symbol.asyncDispose]()).resolves.toBeUndefined()
})

test('a free call is charged to no organization, and says what it would have cost', async () => {
  const { settlements, holds, released, written, call, meter, deps } = open([
    started,
    said,
    finished,
  ])
  const bill = await openFreeBill(call as never, request, meter, deps)
  expect(await bill.settle()).toMatchObject({
    creditsUsed: 0,
    costUsd: 0.000_33,
    remainingCredits: null,
  })
  await bill[Symbol.asyncDispose]()
  expect([holds, settlements, released]).toEqual([[], [], []])
  expect(written.map(({ header }) => header['outcome'])).toEqual(['completed'])
  // No organization is charged, and the operator sees what it costs.
  expect(await deps.metrics.registry.metrics()).toContain(
    'gatehouse_cost_usd_total{model="model-1"} 0.00033\n',
  )
})

test.for([
  ['that fails before it is answered is given back', [], false, ['req_1']],
  ['that fails after the upstream has begun is spent', [started], false, []],
  ['that its caller leaves is spent', [], true, []],
  ['that is cut in the middle is spent', [started, said], false, []],
] as const)('a free call %s', async ([, events, hasHungUp, givenBack]) => {
  const { released, hangUp, call, meter, deps } = open(events)
  const bill = await openFreeBill(call as never, request, meter, deps)
  if (hasHungUp) hangUp()
  await bill[Symbol.asyncDispose]()
  expect(released).toEqual(givenBack)
})

test.each([
  ['a stream', true, 'cut'],
  ['a plain answer, of which its caller gets nothing,', false, 'failed'],
])('%s that the process ends itself is settled as a failure is', async (_, isStreamed, outcome) => {
  const { settlements, hangUp, call, meter, deps } = open([
    started,
    said,
    ...(isStreamed ? (['left'] as const) : []),
  ])
  const ended = new ApiError('overloaded', 'This process is shutting down.')
  {
    await using bill = await openBill(call, judged({ isStreamed }), meter, deps)
    hangUp(ended)
    bill.noteFailure(ended)
  }
  expect(settlements.map(({ event, amount }) => [event.header['outcome'], amount > 0n])).toEqual([
    [outcome, outcome === 'cut'],
  ])
})

const blocked = new ApiError('policy_blocked', 'A policy blocks this.', {
  policy: { policy_id: 'pol_1', version: 3, reason_code: 'RULE_MATCHED' },
})
const moderated = new ApiError('moderation_blocked', 'This is blocked.')
const unjudged = answerUnjudged(new ScorerUnavailable('The scorer is late.'))
const unreadable = answerUnjudged(
  new ScorerUnavailable('no score', { cause: new JudgeFailure('no_verdict', 'Odd words.') }),
)
const tooLarge = answerBeyondLimits()

const verdicts = [
  ['blocked before it was sent costs nothing', blocked, [], true, 0n, 'blocked'],
  ['blocked in the middle of a stream is paid', blocked, [started, said], true, 345n, 'blocked'],
  ['blocked as a whole is paid', blocked, [started, said, finished], false, 330n, 'blocked'],
  ['blocked for its category is paid', moderated, [started, said], true, 345n, 'blocked'],
  ['that is too large to be judged is paid', tooLarge, [started, said], true, 345n, 'cut'],
  ['that is too large as a whole is paid', tooLarge, [started, said, finished], false, 330n, 'cut'],
  ['that could not be judged is free', unjudged, [started, said], true, 0n, 'failed'],
  ['that could not be judged at its end is free', unjudged, [started, said], false, 0n, 'failed'],
  ['of which something has left is paid', unjudged, [started, said, 'left'], true, 345n, 'cut'],
  [
    'that gets no verdict because of its words is charged',
    unreadable,
    [started, said],
    false,
    345n,
    'cut',
  ],
] as const

test.for(verdicts)('an answer %s', async ([, error, events, isStreamed, amount, outcome]) => {
  for (const hasHungUp of [false, true]) {
    const { settlements, hangUp, call, meter, deps } = open(events)
    const bill = await openBill(call, judged({ isStreamed, webSearchesMin: 0 }), meter, deps)
    const told = bill.noteFailure(error) as ApiError
    if (error instanceof UnjudgedAnswer) {
      expect(told.message.endsWith('What was generated is charged.')).toBe(amount > 0n)
      expect(told.message.endsWith('Nothing is charged.')).toBe(amount === 0n)
    } else expect(told).toBe(error)
    // A plain answer goes on without its caller, and is still judged.
    if (hasHungUp) hangUp()
    await bill[Symbol.asyncDispose]()
    expect(settlements.map((each) => [each.amount, each.event.header['outcome']])).toEqual([
      [amount, outcome],
    ])
  }
})

test('a request that is blocked before it is sent is not charged for searches', async () => {
  const { settlements, call, meter, deps } = open([])
  const priced = { ...model, price: { ...price, webSearch: 10_000_000_000n } }
  const searching = judged({ model: priced as never, webSearchesMin: 1 })
  const bill = await openBill(call, searching, meter, deps)
  bill.noteFailure(blocked)
  await bill[Symbol.asyncDispose]()
  expect(settlements.map(({ amount }) => amount)).toEqual([0n])
})

test('the event of a blocked answer tells what decided and what matched', async () => {
  const { settlements, call, meter, deps } = open([started, said])
  const checks = judged()
  const bill = await openBill(call, checks, meter, deps)
  const match = {
    policy_id: 'pol_1',
    version: 3,
    direction: 'response' as const,
    mode: 'enforcing' as const,
    score: 10_000,
    threshold: 5000,
  }
  checks.findings.matches.push(match)
  checks.findings.blockedBy = {
    policyId: 'pol_1',
    policyName: 'No secrets',
    version: 3,
    reasonCode: 'RULE_MATCHED',
  }
  bill.noteFailure(blocked)
  await bill[Symbol.asyncDispose]()
  expect(settlements[0]?.event.header).toMatchObject({
    phase: 'call',
    outcome: 'blocked',
    policy_epoch: 7,
    decision: 'refuse',
    effective_decision: 'refuse',
    enforced: true,
    reason_code: 'RULE_MATCHED',
    policy_id: 'pol_1',
    policy_name: 'No secrets',
    version: 3,
    matches: [match],
  })
})

test('a free call that is blocked before it is sent is given back', async () => {
  const { released, written, call, meter, deps } = open([])
  const bill = await openFreeBill(call as never, request, meter, deps)
  bill.noteFailure(moderated)
  await bill[Symbol.asyncDispose]()
  expect(released).toEqual(['req_1'])
  expect(written.map(({ header }) => header['outcome'])).toEqual(['blocked'])
})

const replaced = {
  ...judged(),
  findings: { ...createFindings(), replacement: { model: 'small', tokens: 9 } },
}

test('an answer with other words is charged for what the model has generated', async () => {
  const { call, meter, deps, settlements } = open([started, said])
  const bill = await openBill(call, replaced, meter, deps)
  const { usage } = await bill.settle()
  expect(usage).toMatchObject({ inputTokens: 90, outputTokens: 5 })
  expect(settlements).toMatchObject([
    {
      amount: 345n,
      event: { header: { outcome: 'blocked', replacement_model: 'small', replacement_tokens: 9 } },
    },
  ])
})

test('the usage is told also where the upstream has reported it: the other words come without its report', async () => {
  const { call, meter, deps } = open([started, said, finished])
  const { usage } = await (await openBill(call, replaced, meter, deps)).settle()
  expect(usage).toMatchObject({ inputTokens: 90, outputTokens: 4, origin: 'upstream' })
})

test('a request that is answered with other words costs nothing', async () => {
  const { call, meter, deps, settlements } = open([])
  const bill = await openBill(call, replaced, meter, deps)
  expect(await bill.settle()).toMatchObject({ creditsUsed: 0, usage: noUsage })
  expect(settlements).toMatchObject([{ amount: 0n, event: { header: { outcome: 'blocked' } } }])
})

test('the same where the caller hangs up on the other words', async () => {
  const { call, meter, deps, settlements, hangUp } = open([])
  const asked = { ...replaced, request: { ...replaced.request, webSearchesMin: 1 } }
  const bill = await openBill(call, asked, meter, deps)
  hangUp()
  await bill[Symbol.asyncDispose]()
  expect(settlements).toMatchObject([{ amount: 0n, event: { header: { outcome: 'blocked' } } }])
})
