import { createAdminApiKey, deleteAdminApiKey, listAdminApiKeys } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import {
  createOrganization,
  runOperator,
  type Stack,
  startStack,
} from '@gatehouse/tools/start-stack'
import { startThrowawayRedis, type ThrowawayRedis } from '@gatehouse/tools/throwaway-redis'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Poller, startDatabasePoller } from './support/baseline/poller.ts'
import { type Delay, describeDelays, untilStatus } from './support/baseline/until-status.ts'
import { call } from './support/call.ts'

// A key revoked through one process is refused by another within 5 seconds: with hints, and by polling alone once
// Redis has been stopped. Processes poll once a second, so the bound is five polls, each as long as a bare
// poller of the same database takes at the same time.

const tries = 50
const atOnce = 25 // an organization has at most 50 administrator keys
const pollsMax = 5

let redis: ThrowawayRedis
let stack: Stack
let poller: Poller
beforeAll(async () => {
  redis = await startThrowawayRedis()
  stack = await startStack({ models: null, processes: 2, redis: redis.url })
  poller = await startDatabasePoller(stack.database.url)
})
afterAll(async () => {
  await poller.stop()
  await stack.stop()
  await redis.stop()
})

const list = (baseUrl: string, credential: string) =>
  call(baseUrl, listAdminApiKeys, { credential, query: { limit: '1' } })

/** How long the second process keeps accepting a key after the first has answered its deletion. */
async function revokeAndMeasure(): Promise<Delay> {
  const [here = '', there = ''] = stack.description.base_urls
  const client = createClient({ baseUrl: here, credential: stack.description.admin_key })
  const body = { name: 'short-lived', permissions: ['admin_api_keys.read' as const] }
  const { id, value } = await client.call(createAdminApiKey, { body })
  expect((await list(there, value)).status).toBe(200) // the second process has cached the key now
  await client.call(deleteAdminApiKey, { params: { key_id: id } })
  return untilStatus(401, () => list(there, value), poller)
}

async function measureAll(how: string): Promise<Delay[]> {
  const delays: Delay[] = []
  while (delays.length < tries) {
    delays.push(...(await Promise.all(Array.from({ length: atOnce }, revokeAndMeasure))))
  }
  console.log(`revoked ${how}: ${describeDelays(delays)}`)
  return delays
}

test(`with hints: all ${tries} revocations apply within ${pollsMax} polls`, async () => {
  const delays = await measureAll('with hints')
  expect(delays.filter(({ polls }) => polls <= pollsMax)).toHaveLength(tries)
})

test(`a suspended organization is refused by every process within ${pollsMax} polls, and accepted again when it is reinstated`, async () => {
  const { organization_id, admin_key } = await createOrganization(stack.service, 'Late payer')
  for (const baseUrl of stack.description.base_urls) {
    expect((await list(baseUrl, admin_key)).status).toBe(200)
  }
  for (const [command, status] of [
    ['suspend', 403],
    ['reinstate', 200],
  ] as const) {
    await runOperator(stack.service, [command, organization_id])
    const waits = stack.description.base_urls.map((baseUrl) =>
      untilStatus(status, () => list(baseUrl, admin_key), poller),
    )
    for (const { polls } of await Promise.all(waits)) expect(polls).toBeLessThanOrEqual(pollsMax)
  }
})

test(`with Redis stopped: all ${tries} revocations apply within ${pollsMax} polls`, async () => {
  await redis.stop()
  const delays = await measureAll('by polling alone')
  expect(delays.filter(({ polls }) => polls <= pollsMax)).toHaveLength(tries)
})
