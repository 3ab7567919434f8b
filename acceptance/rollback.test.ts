import { setTimeout as sleep } from 'node:timers/promises'

import { createClient } from '@gatehouse/contract/client'
import { readGatewayRollout, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import pg from 'pg'
import { expect, test } from 'vitest'

import { hardlyLimited } from './support/hardly-limited.ts'
import { eventually } from './support/policies/enforcing.ts'
import { beginRaw, pathOf } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// A configuration that suddenly refuses half of all calls, in two processes and with a worker of its own.

// Until the rollback is seen, more calls are made than the limits of a minute allow.
const stack = useStack({ processes: 2, environment: hardlyLimited() })

const requests = 40
const config = {
  rules: { denylist: ['falcon'] },
  rollout: {
    rollback_on_spike: true,
    rollback_min_requests: requests,
    rollback_window_minutes: 5,
    rollback_cooldown_minutes: 1,
  },
}

async function ask(process: number, word: string) {
  const { project_key: credential } = stack().description
  const content = `Tell me about the ${word}.`
  const payload = JSON.stringify({ model: 'chat-scripted', messages: [{ role: 'user', content }] })
  const { baseUrl } = stack().apis[process]!
  const { status, headers } = await beginRaw(
    { baseUrl, credential },
    { path: pathOf.chat, payload },
  ).answer
  return [status, headers['x-policy-decision']]
}

const denied = [400, 'refuse; mode=enforced']
const rolledBack = [200, 'allow; mode=rollback']

async function readRollbacks() {
  const client = new pg.Client({ connectionString: stack().database.url })
  await client.connect()
  try {
    const { rows } = await client.query<{ header: Record<string, unknown> }>(
      `select header from event where kind = 'revision' and header->>'action' = 'rolled_back'`,
    )
    return rows.map(({ header }) => header)
  } finally {
    await client.end()
  }
}

test('a spike is rolled back in all processes, and enforced again after the cool-down', async () => {
  const { base_url: baseUrl, admin_key: credential } = stack().description
  const client = createClient({ baseUrl, credential })
  await client.call(saveGatewayConfig, { body: { config } as never })
  await waitUntil(async () => (await client.call(readGatewayRollout, {})).is_applied)
  for (let sent = 0; sent < requests; sent++) {
    const isDenied = sent % 2 === 0
    const [status] = await ask(Math.floor(sent / 2) % 2, isDenied ? 'falcon' : 'hill')
    expect(status).toBe(isDenied ? 400 : 200)
  }
  const startedMs = performance.now()
  for (const process of [0, 1]) {
    await expect.poll(() => ask(process, 'falcon'), eventually).toEqual(rolledBack)
  }
  console.log(`rolled back in both after ${Math.round(performance.now() - startedMs)} ms`)
  const rollbacks = await readRollbacks()
  expect(rollbacks).toEqual([expect.objectContaining({ action: 'rolled_back' })])
  const { rolled_back_until } = await client.call(readGatewayRollout, {})
  expect(rolled_back_until).not.toBeNull()
  // By the clock of each process.
  await sleep(Date.parse(rolled_back_until!) - Date.now())
  for (const process of [0, 1]) {
    await expect.poll(() => ask(process, 'falcon'), eventually).toEqual(denied)
  }
  expect(await readRollbacks()).toEqual(rollbacks)
}, 300_000)
