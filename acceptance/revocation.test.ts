import { createAdminApiKey, deleteAdminApiKey, listAdminApiKeys } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import {
  createOrganization,
  runOperator,
  type Stack,
  startStack,
} from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { call } from './support/call.ts'
import { startOwnRedis } from './support/own-redis.ts'

// A key revoked through one process is refused by another within 5 seconds: with hints, and by
// polling alone once Redis has been stopped.

const tries = 50
const atOnce = 25 // an organization has at most 50 administrator keys
const boundMs = 5000

let redis: Awaited<ReturnType<typeof startOwnRedis>>
let stack: Stack
beforeAll(async () => {
  redis = await startOwnRedis()
  stack = await startStack({ models: null, processes: 2, redis: redis.url })
})
afterAll(async () => {
  await stack.stop()
  await redis.stop()
})

const list = (baseUrl: string, credential: string) =>
  call(baseUrl, listAdminApiKeys, { credential, query: { limit: '1' } })

/** How long the second process goes on accepting a key after the first has answered its deletion. */
async function revokeAndMeasure(): Promise<number> {
  const [here = '', there = ''] = stack.description.base_urls
  const client = createClient({ baseUrl: here, credential: stack.description.admin_key })
  const body = { name: 'short-lived', permissions: ['admin_api_keys.read' as const] }
  const { id, value } = await client.call(createAdminApiKey, { body })
  expect((await list(there, value)).status).toBe(200) // the second process now remembers the key
  await client.call(deleteAdminApiKey, { params: { key_id: id } })
  return untilStatus(401, () => list(there, value))
}

async function untilStatus(
  status: number,
  ask: () => Promise<{ status: number }>,
): Promise<number> {
  const startedAt = performance.now()
  while (performance.now() - startedAt < 2 * boundMs) {
    if ((await ask()).status === status) return performance.now() - startedAt
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return Infinity
}

async function measureAll(): Promise<number[]> {
  const delays: number[] = []
  while (delays.length < tries) {
    delays.push(...(await Promise.all(Array.from({ length: atOnce }, revokeAndMeasure))))
  }
  return delays.toSorted((left, right) => left - right)
}

function report(how: string, delays: readonly number[]) {
  const at = (share: number) => Math.round(delays[Math.floor(delays.length * share)] ?? 0)
  console.log(`revoked ${how}: median ${at(0.5)} ms, slowest ${at(0.999)} ms of ${delays.length}`)
}

test(`with hints: ${tries} of ${tries} within 5 s`, async () => {
  const delays = await measureAll()
  report('with hints', delays)
  expect(delays.filter((delay) => delay <= boundMs)).toHaveLength(tries)
})

test('a suspended organization is refused by every process within 5 s, and comes back', async () => {
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
      untilStatus(status, () => list(baseUrl, admin_key)),
    )
    for (const delay of await Promise.all(waits)) expect(delay).toBeLessThan(boundMs)
  }
})

test(`with Redis stopped: ${tries} of ${tries} within 5 s`, async () => {
  await redis.stop()
  const delays = await measureAll()
  report('by polling alone', delays)
  expect(delays.filter((delay) => delay <= boundMs)).toHaveLength(tries)
})
