import { readFile } from 'node:fs/promises'

import { createAdminApiKey, listAdminApiKeys } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'

import { atFixedRate, percentile } from './support/fixed-rate.ts'
import { useStack } from './support/use-stack.ts'

// With a million keys in the table, an authenticated list stays quick.

const stack = useStack()
const keys: string[] = []

beforeAll(async () => {
  const client = new pg.Client({ connectionString: stack().database.url })
  await client.connect()
  const seed = new URL('../service/src/testing/million-keys.sql', import.meta.url)
  await client.query(await readFile(seed, 'utf8'))
  const { rows } = await client.query<{ count: string }>('select count(*) from api_key')
  if (Number(rows[0]?.count) < 1_000_000) throw new Error('fewer than a million keys')
  // Otherwise the database would do this behind the measurement's back.
  await client.query('vacuum analyze')
  await client.query('checkpoint')
  await client.end()
  const { base_url: baseUrl, admin_key: credential } = stack().description
  const admin = createClient({ baseUrl, credential })
  for (let index = 0; index < 49; index++) {
    const body = { name: `reader ${index}`, permissions: ['admin_api_keys.read' as const] }
    keys.push((await admin.call(createAdminApiKey, { body })).value)
  }
}, 240_000)

test('200 authenticated lists per second: p99 under 20 ms', async () => {
  const { base_url } = stack().description
  const send = async (index: number) => {
    const headers = { authorization: `Bearer ${keys[index % keys.length]}` }
    const response = await fetch(`${base_url}${listAdminApiKeys.path}`, { headers })
    const { data } = (await response.json()) as { data: unknown[] }
    if (response.status !== 200 || data.length !== 20) throw new Error('not a full page')
  }
  await atFixedRate({ perSecond: 200, seconds: 2 }, send)
  const times = await atFixedRate({ perSecond: 200, seconds: 10 }, send)
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)]
  console.log(`${times.length} lists at 200/s: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`)
  expect(p99).toBeLessThan(20)
})
