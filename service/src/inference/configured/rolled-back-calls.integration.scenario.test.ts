import { readGatewayRollout, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { rollBackSpikes } from '#gateway-config/rollout/roll-back-spikes.ts'
import { completion, preparePlainCalls, sendPlain } from '#testing/plain-calls.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

// Who can have a configuration rolled back by what is sent, and what stays in force when it is.

const config = {
  rules: { denylist: ['project falcon'], flagged_categories: ['hate'], redact: true },
  org_controls: {
    data_classification: 'restricted',
    user_quotas: true,
    user_quota: { requests: 25, tokens: 0, window: 'daily' },
  },
  rollout: { rollback_on_spike: true },
}

async function prepare() {
  const calls = await preparePlainCalls()
  const { house, organization, upstream } = calls
  upstream.behave = (response) => sendPlain(response, completion('All is well.'))
  const snapshot = () => house.policies.inForce.pin(organization.organizationId).snapshot
  expect((await calls.send(saveGatewayConfig, { body: { config } })).status).toBe(200)
  await waitUntil(() => snapshot().gateway !== null)
  const other = (await createProjectKey(house, organization)).value

  /** The status, and what the call was told about its policies. */
  async function post(credential: string, content: string, user?: string) {
    const { statusCode, headers } = await calls.app.inject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers: { authorization: `Bearer ${credential}`, ...(user && { 'x-policy-user': user }) },
      payload: { model: 'm', messages: [{ role: 'user', content }] },
    })
    return [statusCode, headers['x-policy-decision']]
  }
  /** Has a worker look, and says whether refusals are lifted now. */
  async function look(): Promise<boolean> {
    await rollBackSpikes(house)
    const { body } = await calls.send(readGatewayRollout)
    const { rolled_back_until } = body as unknown as { rolled_back_until: string | null }
    if (rolled_back_until === null) return false
    await waitUntil(() => snapshot().gateway?.rolledBackUntil != null)
    return true
  }
  return { ...calls, own: calls.credential, other, post, look }
}

const served = [200, 'allow; mode=enforced']
const lifted = [200, 'allow; mode=rollback']
const refused = [400, 'refuse; mode=enforced']

test('a caller cannot switch the configuration off by what is always blocked', async () => {
  const { own, post, look } = await prepare()
  for (let sent = 0; sent < 22; sent++) {
    expect(await post(own, `${sent} [[cat:self-harm=0.9]]`)).toEqual(refused)
  }
  expect(await look()).toBe(false)
  expect(await post(own, 'Tell me about Project Falcon.')).toEqual(refused)
})

test('nor by what the configuration refuses, where others call too', async () => {
  const { own, other, post, look } = await prepare()
  expect(await post(other, 'Hello')).toEqual(served)
  for (let sent = 0; sent < 22; sent++) {
    expect(await post(own, `${sent} Project Falcon [[cat:hate=0.9]]`, 'ann')).toEqual(refused)
  }
  expect(await look()).toBe(false)
  expect(await post(other, 'Tell me about Project Falcon.')).toEqual(refused)
})

test('a rollback lifts refusals by lists and flagged categories, and nothing else', async () => {
  const { own, other, post, look, upstream, db } = await prepare()
  for (let sent = 0; sent < 22; sent++) await post(own, 'Project Falcon')
  expect(await post(other, 'Project Falcon')).toEqual(refused)
  expect(await look()).toBe(true)
  expect(await post(other, 'Project Falcon and [[cat:hate=0.9]]')).toEqual(lifted)
  expect(await post(other, 'Words [[cat:self-harm=0.9]]')).toEqual([400, 'refuse; mode=rollback'])
  expect(await post(other, 'Mail jane.doe@example.com please.')).toEqual(lifted)
  expect(JSON.stringify(upstream.bodies.at(-1))).toContain('[EMAIL_1]')
  expect(JSON.stringify(upstream.bodies)).not.toContain('jane.doe')
  for (let sent = 0; sent < 25; sent++) expect(await post(own, 'Hello', 'ann')).toEqual(lifted)
  expect((await post(own, 'Hello', 'ann'))[0]).toBe(429)
  const { rows } = await sql<{ header: object }>`
    select header from event where header->>'rollout_mode' = 'rollback' limit 1`.execute(db)
  expect(rows).toMatchObject([{ header: { data_classification: 'restricted' } }])
})
