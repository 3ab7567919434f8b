import type { Endpoint } from '@gatehouse/contract/endpoint'
import { readGatewayConfig, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import {
  createGuardrail,
  listGuardrails,
  updateGuardrail,
} from '@gatehouse/contract/policy-gateway/guardrails'
import {
  approveGatewayProposal,
  createGatewayProposal,
  type GatewayProposal,
} from '@gatehouse/contract/policy-gateway/proposals'
import { beforeEach, expect, test } from 'vitest'

import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

// A pipeline proposes for its set, and a person approves for none.

type Api = Awaited<ReturnType<typeof createTestApi>>
type Sent = NonNullable<Parameters<Api['send']>[1]>
let api: Api
let approver: Awaited<ReturnType<typeof createMemberSession>>
beforeEach(async () => {
  api = await createTestApi({ findAddresses: async () => ['93.184.216.34'] })
  const { organizationId } = api.organization
  approver = await createMemberSession(api.house, { organizationId, role: 'policy_publisher' })
})

const wanted = {
  name: 'House',
  url: 'https://guard.example.com/check',
  secret: `whsec_${Buffer.alloc(24).toString('base64')}`,
}
const send = async (set: string | null, endpoint: Endpoint, sent: Sent = {}) => {
  const headers = { ...(set !== null && { 'x-gatehouse-set': set }) }
  const { status, body } = await api.send(endpoint, { ...sent, headers })
  return { status, code: body.error?.code, body }
}
const propose = async (set: string | null, body: object, takesOver = false) => {
  const query = { take_over: String(takesOver) }
  const answer = await send(set, createGatewayProposal, { body, query })
  const { proposal } = answer.body as unknown as { proposal: GatewayProposal }
  return { ...answer, proposal }
}
const approve = (set: string | null, { id }: GatewayProposal) =>
  send(set, approveGatewayProposal, {
    credential: approver.token,
    params: { proposal_id: id },
  })
const configSet = async () =>
  ((await api.send(readGatewayConfig)).body as unknown as { managed_by: string | null }).managed_by
const guardrails = async () =>
  (await api.send(listGuardrails)).body.data as unknown as {
    id: string
    managed_by: string | null
  }[]
const named = (name: string) => ({ config: { name } })

test('what is created by a proposal is managed by its set, and not by that of its approver', async () => {
  const config = await propose('platform', named('First'))
  expect(config.proposal).toMatchObject({ set: 'platform', take_over: false })
  expect((await approve('shop', config.proposal)).status).toBe(200)
  expect(await configSet()).toBe('platform')
  const { proposal } = await propose('platform', { new_guardrail: wanted })
  expect((await approve(null, proposal)).status).toBe(200)
  expect(await guardrails()).toMatchObject([{ managed_by: 'platform' }])
})

test('409: a proposal of another set, and of no set', async () => {
  await send('platform', saveGatewayConfig, { body: named('First') })
  await send('platform', createGuardrail, { body: wanted })
  const { id = '' } = (await guardrails())[0] ?? {}
  for (const set of ['shop', null]) {
    for (const body of [
      named('Second'),
      { guardrail: { id, change: { name: 'Home' } } },
      { deleted_guardrail: id },
    ]) {
      expect(await propose(set, body)).toMatchObject({ status: 409, code: 'managed_elsewhere' })
    }
  }
  for (const body of [named('Second'), { guardrail: { id, change: { name: 'Home' } } }]) {
    const { proposal } = await propose('platform', body)
    expect((await approve(null, proposal)).status).toBe(200)
  }
  expect([await configSet(), (await guardrails())[0]?.managed_by]).toEqual(['platform', 'platform'])
})

test('a proposal takes over when it is approved, which is an event', async () => {
  await send('platform', saveGatewayConfig, { body: named('First') })
  const { proposal } = await propose('shop', named('Second'), true)
  expect(proposal).toMatchObject({ set: 'shop', take_over: true })
  expect(await configSet()).toBe('platform')
  expect((await approve(null, proposal)).status).toBe(200)
  expect(await configSet()).toBe('shop')
  const rows = await api.db.selectFrom('event').select('header').orderBy('seq').execute()
  const actions = rows.map(({ header }) => (header as { action: string }).action)
  expect(actions.slice(-3)).toEqual(['taken_over', 'updated', 'updated'])
})

test('what another set has taken over since is approved no more', async () => {
  await send('platform', createGuardrail, { body: wanted })
  const { id = '' } = (await guardrails())[0] ?? {}
  const { proposal } = await propose('platform', { guardrail: { id, change: { name: 'Home' } } })
  await send('shop', updateGuardrail, {
    params: { guardrail_id: id },
    body: { name: 'House' },
    query: { take_over: 'true' },
  })
  expect(await approve(null, proposal)).toMatchObject({ status: 409, code: 'approval_outdated' })
  expect((await guardrails())[0]?.managed_by).toBe('shop')
})
