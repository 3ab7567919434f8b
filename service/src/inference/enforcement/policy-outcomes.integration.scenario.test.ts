import { sql } from 'kysely'
import { expect, test } from 'vitest'

import type { House } from '#assemble.ts'
import type { MatchReport, Refuser } from '#audit/policy-report.ts'
import { ApiError } from '#platform/api-error.ts'
import {
  completion,
  outcomesOf,
  type PlainCalls,
  preparePlainCalls,
  priceOfUsage,
  sendPlain,
  sendStream,
} from '#testing/plain-calls.ts'

import type { Findings } from './findings.ts'
import { type FakeChecks, openFakeChecks } from './testing/fake-checks.ts'

// What a caller, the ledger and the audit log see of a policy that decides. The judge is a double: it says what it is told.

const policy = { policy_id: 'pol_1', version: 3, reason_code: 'RULE_MATCHED' }
const blocked = () => new ApiError('policy_blocked', 'A policy blocks this.', { policy })
const unjudged = () => new ApiError('policy_evaluation_unavailable', 'It could not be judged.')
const blockedBy: Refuser = {
  policyId: 'pol_1',
  policyName: 'No secrets',
  version: 3,
  reasonCode: 'RULE_MATCHED',
}
const matchOf = (members: Partial<MatchReport> = {}): MatchReport => ({
  policy_id: 'pol_1',
  version: 3,
  direction: 'request',
  mode: 'enforcing',
  score: 10_000,
  threshold: 5000,
  ...members,
})

/** An API whose calls are checked like this. */
function prepare(check: (findings: Findings) => FakeChecks): Promise<PlainCalls> {
  const openChecks = openFakeChecks(check)
  const change = ({ inference, ...house }: House): House => ({
    ...house,
    inference: { ...inference, steps: { ...inference.steps, openChecks } },
  })
  return preparePlainCalls({ change })
}

const post = (calls: PlainCalls, url: string, body: object = {}) =>
  calls.app.inject({
    method: 'POST',
    url,
    headers: { authorization: `Bearer ${calls.credential}` },
    payload: { model: 'm', messages: [{ role: 'user', content: 'Hello' }], ...body },
  })

async function eventsOf({ house, organization }: PlainCalls) {
  const { rows } = await sql<{ header: Record<string, unknown> }>`
    select header from event where kind = 'enforcement'
      and organization_id = ${organization.organizationId} order by seq`.execute(house.db)
  return rows.map(({ header }) => header)
}

const countsOf = ({ house }: PlainCalls) =>
  house.db
    .selectFrom('policy_decision_hour')
    .select(['policy_id', 'version', 'direction', 'decision', 'mode', 'count'])
    .orderBy('policy_id')
    .execute()

const routes = [
  ['/v1/messages', { max_tokens: 5 }, 'messages', true],
  ['/v1/chat/completions', {}, 'chat.completions', true],
  ['/v1/responses', { input: 'Hello', messages: undefined }, 'responses', false],
  ['/v1/messages/count_tokens', {}, 'messages.count_tokens', true],
] as const

test.for(routes)(
  '400: a request to %s that a rule blocks costs nothing and reaches no model',
  async ([url, body, target, hasPolicy]) => {
    const calls = await prepare(() => ({
      found: { matches: [matchOf()], blockedBy },
      checks: { beforeHold: () => Promise.reject(blocked()) },
    }))
    for (const stream of [true, false]) {
      const isCount = target === 'messages.count_tokens'
      const answer = await post(calls, url, { ...body, ...(!isCount && { stream }) })
      expect([answer.statusCode, answer.headers['x-policy-decision']]).toEqual([400, 'refuse'])
      expect(answer.body).toContain('policy_blocked')
      expect((answer.json() as { policy?: unknown }).policy).toEqual(hasPolicy ? policy : undefined)
    }
    const event = {
      phase: 'call',
      policy_target: target,
      model: 'm',
      outcome: 'blocked',
      status: 400,
      code: 'policy_blocked',
      policy_epoch: 0,
      decision: 'refuse',
      effective_decision: 'refuse',
      enforced: true,
      reason_code: 'RULE_MATCHED',
      policy_id: 'pol_1',
      policy_name: 'No secrets',
      version: 3,
      matches: [matchOf()],
    }
    expect(await eventsOf(calls)).toMatchObject([event, event])
    expect(await outcomesOf(calls)).toMatchObject({ charged: [], held: 0 })
    expect(await countsOf(calls)).toMatchObject([{ decision: 'refuse', count: '2' }])
    expect(calls.upstream.bodies).toEqual([])
  },
)

/** Blocks an answer after its first piece. */
const endAnswer =
  (error: () => ApiError) =>
  ({ matches }: Findings): FakeChecks => ({
    checks: {
      async *guard(callModel) {
        for await (const piece of callModel()) {
          if (!piece.isPlain) yield piece
          matches.push(matchOf({ direction: 'response' }))
          throw error()
        }
      },
    },
  })

test('400: a plain answer that a rule blocks is charged what its upstream reports', async () => {
  const calls = await prepare(endAnswer(blocked))
  calls.upstream.behave = (response) => sendPlain(response, completion('A secret'))
  // More often than an upstream may fail.
  for (let call = 1; call <= 6; call++) {
    const answer = await post(calls, '/v1/chat/completions')
    expect([answer.statusCode, answer.headers['x-policy-decision']]).toEqual([400, 'refuse'])
    expect(answer.json()).toMatchObject({ error: { code: 'policy_blocked' }, policy })
    expect(answer.body).not.toContain('secret')
  }
  expect(await outcomesOf(calls)).toEqual({
    charged: Array.from({ length: 6 }, () => priceOfUsage),
    outcomes: Array.from({ length: 6 }, () => 'blocked'),
    held: 0,
  })
  // Counted in the statement that settles the call.
  expect(await countsOf(calls)).toEqual([
    {
      policy_id: 'pol_1',
      version: 3,
      direction: 'response',
      decision: 'refuse',
      mode: 'enforcing',
      count: '6',
    },
  ])
})

test.each([
  ['/v1/chat/completions', {}, true],
  ['/v1/messages', { max_tokens: 50 }, true],
  ['/v1/responses', { input: 'Hello', messages: undefined }, false],
] as const)(
  'a stream of %s that a rule blocks ends with an error and is charged for what was generated',
  async (url, body, hasPolicy) => {
    const calls = await prepare(endAnswer(blocked))
    calls.upstream.behave = (response) => sendStream(response, 'word '.repeat(20))
    const answer = await post(calls, url, { ...body, stream: true })
    expect([answer.statusCode, answer.headers['x-policy-decision']]).toEqual([200, 'allow'])
    expect(answer.body).toContain('policy_blocked')
    expect(answer.body.includes('"reason_code":"RULE_MATCHED"')).toBe(hasPolicy)
    const { charged, outcomes, held } = await outcomesOf(calls)
    expect([outcomes, held]).toEqual([['blocked'], 0])
    expect(charged[0]).toBeGreaterThan(15)
    expect(await eventsOf(calls)).toMatchObject([
      { decision: 'refuse', reason_code: 'RULE_MATCHED' },
    ])
  },
)

test.each([
  [true, { charged: [priceOfUsage], outcomes: ['cut'], held: 0 }],
  [false, { charged: [0], outcomes: ['failed'], held: 0 }],
])(
  'an answer that cannot be judged is free unless something of it has left (streamed: %s)',
  async (stream, outcomes) => {
    const calls = await prepare(endAnswer(unjudged))
    calls.upstream.behave = (response) =>
      stream ? sendStream(response, 'Hello') : sendPlain(response, completion('Hello'))
    const answer = await post(calls, '/v1/chat/completions', { stream })
    expect(answer.statusCode).toBe(stream ? 200 : 503)
    if (!stream) expect(answer.headers).toMatchObject({ 'x-policy-decision': 'refuse' })
    expect(await outcomesOf(calls)).toEqual(outcomes)
    expect(await eventsOf(calls)).toMatchObject([
      { decision: 'refuse', reason_code: 'POLICY_EVALUATION_UNAVAILABLE', policy_id: null },
    ])
  },
)

test('a call that is allowed says so, and its event lists what monitoring policies found', async () => {
  const monitored = matchOf({ mode: 'monitoring' })
  const calls = await prepare(() => ({
    found: { matches: [monitored], unevaluated: ['pol_2'] },
  }))
  calls.upstream.behave = (response) => sendPlain(response, completion('Hi'))
  const answer = await post(calls, '/v1/chat/completions')
  const count = await post(calls, '/v1/messages/count_tokens')
  for (const { statusCode, headers } of [answer, count]) {
    expect([statusCode, headers['x-policy-decision']]).toEqual([200, 'allow'])
  }
  const common = {
    phase: 'call',
    outcome: 'completed',
    decision: 'allow',
    effective_decision: 'allow',
    enforced: false,
    reason_code: null,
    policy_id: null,
    policy_name: null,
    version: null,
    matches: [monitored],
    policies_unevaluated: ['pol_2'],
  }
  expect(await eventsOf(calls)).toMatchObject([
    { ...common, policy_target: 'chat.completions' },
    { ...common, policy_target: 'messages.count_tokens' },
  ])
  expect(await countsOf(calls)).toMatchObject([
    { decision: 'allow', mode: 'monitoring', count: '2' },
  ])
  expect((await outcomesOf(calls)).charged).toEqual([priceOfUsage])
})

test('a call without policies has an event without lists', async () => {
  const calls = await prepare(() => ({}))
  calls.upstream.behave = (response) => sendPlain(response, completion('Hi'))
  await post(calls, '/v1/chat/completions')
  const [event] = await eventsOf(calls)
  expect(event).toMatchObject({ decision: 'allow', policy_epoch: 0 })
  expect(event).not.toHaveProperty('matches')
  expect(event).not.toHaveProperty('policies_unevaluated')
})

test.each([
  ['{"model":', 400, 'invalid_json'],
  ['{"model":"none","messages":[{"role":"user","content":"Hi"}]}', 404, 'model_not_found'],
  ['{"model":"m","messages":[]}', 422, 'invalid_parameter'],
])('a count of %s that is refused leaves its event', async (payload, status, code) => {
  const calls = await prepare(() => ({}))
  const answer = await calls.app.inject({
    method: 'POST',
    url: '/v1/messages/count_tokens',
    headers: {
      authorization: `Bearer ${calls.credential}`,
      'content-type': 'application/json',
    },
    payload,
  })
  expect(answer.statusCode).toBe(status)
  expect(await eventsOf(calls)).toMatchObject([
    { policy_target: 'messages.count_tokens', outcome: 'refused', status, code, decision: 'allow' },
  ])
})
