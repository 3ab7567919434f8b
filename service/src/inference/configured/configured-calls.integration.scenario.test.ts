import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import {
  completion,
  outcomesOf,
  type PlainCalls,
  preparePlainCalls,
  priceOfUsage,
  sendPlain,
  sendStream,
} from '#testing/plain-calls.ts'

// What a caller, the ledger and the audit log see of a configuration of the policy gateway.

async function configure(calls: PlainCalls, config: object) {
  const { house, organization } = calls
  const snapshot = () => house.policies.inForce.pin(organization.organizationId).snapshot
  const before = snapshot().epoch
  expect((await calls.send(saveGatewayConfig, { body: { config } })).status).toBe(200)
  await waitUntil(() => snapshot().epoch > before)
}

async function prepare(config: object, answer = 'All is well.') {
  const calls = await preparePlainCalls()
  await configure(calls, config)
  calls.upstream.behave = (response, call) =>
    calls.upstream.bodies[call - 1]?.['stream'] === true
      ? sendStream(response, answer)
      : sendPlain(response, completion(answer))
  return calls
}

const post = (calls: PlainCalls, content: string, members: object = {}, headers: object = {}) =>
  calls.app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${calls.credential}`, ...headers },
    payload: { model: 'm', messages: [{ role: 'user', content }], ...members },
  })

async function eventsOf({ house, organization }: PlainCalls) {
  const { rows } = await sql<{ header: Record<string, unknown> }>`
    select header from event where kind = 'enforcement'
      and organization_id = ${organization.organizationId} order by seq`.execute(house.db)
  return rows.map(({ header }) => header)
}

test('a request that is escalated names whom to turn to, and costs nothing', async () => {
  const calls = await prepare({
    policy_id: 'house-rules',
    name: 'House rules',
    rules: { denylist: ['bomb'], reason_codes: ['ESCALATE_HR'] },
    org_controls: { data_classification: 'restricted' },
    refusal_replacement: { mode: 'escalate', escalation_path: 'help@example.com' },
  })
  const answer = await post(calls, 'A BOMB')
  expect([answer.statusCode, answer.headers['x-policy-decision']]).toEqual([
    400,
    'escalate; mode=enforced',
  ])
  expect(answer.json()).toMatchObject({
    error: { code: 'policy_blocked' },
    policy: {
      policy_id: 'house-rules',
      version: 1,
      reason_code: 'ESCALATE_HR',
      escalation_path: 'help@example.com',
    },
  })
  expect(await eventsOf(calls)).toMatchObject([
    {
      outcome: 'blocked',
      decision: 'escalate',
      effective_decision: 'escalate',
      enforced: true,
      reason_code: 'ESCALATE_HR',
      rollout_mode: 'enforced',
      policy_id: 'house-rules',
      policy_name: 'House rules',
      version: 1,
      denylist_hits: ['bomb'],
      escalation_path: 'help@example.com',
      data_classification: 'restricted',
    },
  ])
  expect(await outcomesOf(calls)).toMatchObject({ charged: [0], held: 0 })
  expect(calls.upstream.bodies).toEqual([])
})

test.each([true, false])('an answer ends before its first term (stream: %s)', async (stream) => {
  const calls = await prepare({ rules: { denylist: ['straße'] } }, 'Take the STRASSE, then left.')
  const answer = await post(calls, 'Where?', { stream })
  expect(answer.statusCode).toBe(400)
  expect(answer.headers['x-policy-decision']).toBe('refuse; mode=enforced')
  expect(answer.body).toContain('policy_blocked')
  expect(answer.body).not.toContain('STRASSE')
  const [event] = await eventsOf(calls)
  expect(event).toMatchObject({
    outcome: 'blocked',
    decision: 'refuse',
    reason_code: 'REFUSE',
    denylist_hits: ['straße'],
  })
  expect(await outcomesOf(calls)).toMatchObject({ charged: [priceOfUsage] })
})

test('in the shadow everything is recorded and nothing refused', async () => {
  const shadow = { enabled: true, sample_percent: 100 }
  const rules = { denylist: ['bomb', 'left'], flagged_categories: ['hate'] }
  const calls = await prepare({ rules, rollout: { shadow } }, 'Take the LEFT one.')
  for (const stream of [true, false]) {
    const answer = await post(calls, 'A bomb [[cat:hate=0.9]]', { stream })
    expect([answer.statusCode, answer.headers['x-policy-decision']]).toEqual([
      200,
      'allow; mode=shadow',
    ])
  }
  const event = {
    outcome: 'completed',
    decision: 'refuse',
    effective_decision: 'allow',
    enforced: false,
    reason_code: 'REFUSE',
    rollout_mode: 'shadow',
    triggered_categories: ['hate'],
    denylist_hits: ['bomb', 'left'],
  }
  expect(await eventsOf(calls)).toMatchObject([event, event])
})

test('targets choose calls by their label or endpoint; the others are outside', async () => {
  const canary = { enabled: true, sample_percent: 100, targets: ['support bot'] }
  const calls = await prepare({ rules: { denylist: ['bomb'] }, rollout: { canary } })
  const labelled = await post(calls, 'A bomb', {}, { 'x-policy-target': 'support bot' })
  expect(labelled.headers['x-policy-decision']).toBe('refuse; mode=canary')
  const other = await post(calls, 'A bomb')
  expect([other.statusCode, other.headers['x-policy-decision']]).toEqual([200, 'allow'])
  const [, event] = await eventsOf(calls)
  expect(event).toMatchObject({
    decision: 'allow',
    reason_code: null,
    data_classification: 'internal',
  })
  expect(event).not.toHaveProperty('rollout_mode')
})

test('what is always blocked is refused outside of the sample too', async () => {
  const canary = { enabled: true, sample_percent: 0 }
  const calls = await prepare({ rollout: { canary } })
  const answer = await post(calls, 'Words [[cat:self-harm=0.9]]')
  expect([answer.statusCode, answer.headers['x-policy-decision']]).toEqual([400, 'refuse'])
  expect(answer.body).toContain('moderation_blocked')
})

test('a category that the caller flags is refused, whatever the configuration would do', async () => {
  const mode = { mode: 'escalate', escalation_path: 'help@example.com' }
  const calls = await prepare({
    rules: { flagged_categories: ['sexual'] },
    refusal_replacement: mode,
  })
  const answer = await post(calls, 'Words [[cat:hate=0.9]]', { flagged_categories: ['hate'] })
  expect(answer.statusCode).toBe(400)
  expect(answer.body).toContain('moderation_blocked')
  const [event] = await eventsOf(calls)
  expect(event).toMatchObject({
    decision: 'refuse',
    reason_code: 'MODERATION_BLOCKED',
    gateway_decision: 'allow',
    rollout_mode: 'enforced',
    triggered_categories: ['hate'],
  })
})

test('a call that is allowed says so', async () => {
  const calls = await prepare({ rules: { allowlist: ['weather'] } })
  const answer = await post(calls, 'The WEATHER?')
  expect([answer.statusCode, answer.headers['x-policy-decision']]).toEqual([
    200,
    'allow; mode=enforced',
  ])
  expect((await post(calls, 'News?')).statusCode).toBe(400)
  expect(await eventsOf(calls)).toMatchObject([
    {
      decision: 'allow',
      reason_code: 'ALLOW',
      policy_id: 'policy-gateway',
      allowlist_hits: ['weather'],
    },
    { decision: 'refuse', effective_decision: 'refuse', reason_code: 'REFUSE' },
  ])
})

test.each([
  ['enforced', {}, 400, 'refuse'],
  ['shadow', { shadow: { enabled: true, sample_percent: 100 } }, 200, 'allow'],
])('a flagged category in an answer (%s)', async (mode, rollout, status, applied) => {
  const rules = { flagged_categories: ['hate'] }
  const calls = await prepare({ rules, rollout }, 'Words [[cat:hate=0.9]] and words.')
  for (const stream of [true, false]) {
    expect((await post(calls, 'Well?', { stream })).statusCode).toBe(status)
  }
  const event = {
    decision: 'refuse',
    effective_decision: applied,
    rollout_mode: mode,
    policy_id: 'policy-gateway',
    triggered_categories: ['hate'],
  }
  expect(await eventsOf(calls)).toMatchObject([event, event])
})

const file = { filename: 'a.pdf', file_data: 'data:application/pdf;base64,/////w==' }
const withFile = { messages: [{ role: 'user', content: [{ type: 'file', file }] }] }

test('a part that nothing can score is refused by a configuration that says so', async () => {
  const calls = await prepare({ policy_id: 'no-files', rules: { unscored_parts: 'refuse' } })
  const refused = await post(calls, '', withFile)
  expect([refused.statusCode, refused.headers['x-policy-decision']]).toEqual([
    400,
    'refuse; mode=enforced',
  ])
  expect(refused.json()).toMatchObject({
    error: {
      code: 'moderation_blocked',
      message: expect.stringContaining('the configuration no-files of your organization') as string,
    },
    policy: { policy_id: 'no-files', version: 1, reason_code: 'MODERATION_BLOCKED' },
  })
  expect(await eventsOf(calls)).toMatchObject([
    { outcome: 'blocked', decision: 'refuse', policy_id: 'no-files', unscored_parts: true },
  ])
  expect(await outcomesOf(calls)).toMatchObject({ charged: [], held: 0 })
  expect(calls.upstream.bodies).toEqual([])
  expect((await post(calls, 'Only a text.')).statusCode).toBe(200)
})

test.each([
  ['in the shadow', { shadow: { enabled: true, sample_percent: 100 } }, 'refuse'],
  ['by default', {}, undefined],
] as const)('%s such a part passes', async (_, rollout, unscored_parts) => {
  const calls = await prepare({ rules: { unscored_parts }, rollout })
  expect((await post(calls, '', withFile)).statusCode).toBe(200)
})

test('every block ends with whom to ask, where the organization has said so', async () => {
  const contact = 'Ask the AI help desk: ai@example.com.'
  const rules = { denylist: ['bomb'], unscored_parts: 'refuse', contact }
  const calls = await prepare({ rules }, 'Words [[cat:self-harm=0.9]].')
  const refused = [
    await post(calls, 'A bomb'),
    await post(calls, 'Words [[cat:self-harm=0.9]].'),
    await post(calls, '', withFile),
    await post(calls, 'Well?'),
  ]
  for (const { body } of refused) {
    const { error } = JSON.parse(body) as { error: { message: string } }
    expect(error.message).toMatch(/\. Ask the AI help desk: ai@example\.com\.$/)
  }
  const streamed = await post(calls, 'Well?', { stream: true })
  expect(streamed.body).toContain(contact)
  await configure(calls, { rules: { denylist: ['bomb'] } })
  expect((await post(calls, 'A bomb')).body).not.toContain('Ask')
})
