import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

import { createAdminApiKey, listAdminApiKeys } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import pg from 'pg'
import { beforeAll, expect, onTestFinished, test } from 'vitest'

import { startChild } from './support/baseline/child.ts'
import { bestRatio } from './support/baseline/ratio.ts'
import type { ListLoad, ListTimings } from './support/policies/list-load.ts'
import { useStack } from './support/use-stack.ts'

// With a million keys in the table, an authenticated list costs little more than a page of a table with one page.

const stack = useStack({ models: null })
const keys: string[] = []
const pageRows = 20
const onePage = `create table baseline_page as select * from api_key limit ${pageRows}`

beforeAll(async () => {
  const client = new pg.Client({ connectionString: stack().database.url })
  await client.connect()
  await withoutIndexes(client, async () => {
    const seed = new URL('../service/src/testing/million-keys.sql', import.meta.url)
    await client.query(await readFile(seed, 'utf8'))
  })
  const { rows } = await client.query<{ count: string }>('select count(*) from api_key')
  if (Number(rows[0]?.count) < 1_000_000) throw new Error('There are fewer than a million keys.')
  await client.query(onePage)
  // Otherwise the database would do this during the measurement.
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
}, 900_000)

/** Loads faster without the secondary indexes of the table, and puts the same ones back. */
async function withoutIndexes(client: pg.Client, load: () => Promise<void>) {
  const { rows } = await client.query<{ indexname: string; indexdef: string }>(
    `select indexname, indexdef from pg_indexes where tablename = 'api_key' and indexname <> 'api_key_pkey'`,
  )
  expect(rows.length).toBeGreaterThan(0)
  for (const { indexname } of rows) await client.query(`drop index ${indexname}`)
  await load()
  for (const { indexdef } of rows) await client.query(indexdef)
}

const clients = 4
const lists = 1000
const bounds = { p50: 10, p99: 12 }

test(`${lists} lists of ${clients} clients: at most ${bounds.p50} times a bare page at p50, ${bounds.p99} times at p99`, async () => {
  const bareServer = startChild(new URL('support/baseline/bare-list-server.ts', import.meta.url))
  const sender = startChild(new URL('support/policies/list-load.ts', import.meta.url))
  onTestFinished(() => {
    sender.stop()
    bareServer.stop()
  })
  const { address: baselineAddress } = await bareServer.request<{ address: string }>({
    databaseUrl: stack().database.url,
    statement: 'select * from baseline_page',
  })
  const address = `${stack().description.base_url}${listAdminApiKeys.path}`
  const measure = async () => {
    const load: ListLoad = { address, keys, baselineAddress, clients, lists }
    const timings = await sender.request<ListTimings>(load)
    console.log(`${timings.perSecond} lists per second`)
    return timings
  }
  // The first lists are slower: code is compiled and every key is looked up once.
  await measure()
  const best = await bestRatio(bounds, 8, measure)
  expect(best.p50).toBeLessThanOrEqual(bounds.p50)
  expect(best.p99).toBeLessThanOrEqual(bounds.p99)
}, 1_800_000)
