import { setTimeout as sleep } from 'node:timers/promises'

import { waitingRatio } from '@gatehouse/tools/testing/duration-ratio'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import { systemClock } from '#platform/clock.ts'
import { connectDatabase } from '#platform/database.ts'
import { createLog } from '#platform/log.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import { createDatabaseProxy, createTestClock } from '#testing/test-gateway.ts'

import { createBalanceReader } from './balance-reader.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
const organizationId = 'org_1'
const clock = createTestClock()
const lines: string[] = []
const log = createLog('info', { write: (line) => lines.push(line) })
const open: { stop(): Promise<unknown> }[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  await sql`insert into organization (id, name, created_at) values (${organizationId}, 'One', now())`.execute(
    database.db,
  )
})
beforeEach(() => post(1000))
afterEach(async () => {
  for (const each of open.splice(0)) await each.stop()
  lines.length = 0
})
afterAll(async () => database[Symbol.asyncDispose]())

const post = (posted: number) =>
  database.db.updateTable('credit_account').set({ posted, used: 50, held: 100 }).execute()

function startProcess({ now = clock.now, url = database.url } = {}) {
  const db = connectDatabase({ url, poolSize: 5 })
  const balances = createBalanceReader({ db, now, log })
  open.push(balances, { stop: () => db.destroy() })
  return balances
}

test('another process sees a change within 5 s, without a message', async () => {
  const [one, other] = [startProcess({ now: systemClock }), startProcess({ now: systemClock })]
  for (const each of [one, other]) {
    expect(await each.read(organizationId)).toMatchObject({
      total: 1050n,
      used: 50n,
      posted: 1000n,
    })
  }
  await post(600)
  one.setPosted(organizationId, 600n)
  expect(await one.read(organizationId)).toMatchObject({ total: 1050n, posted: 600n })
  const ratio = await waitingRatio('seen by the other', 5000, () =>
    waitUntil(async () => (await other.read(organizationId)).posted === 600n),
  )
  expect(ratio).toBeLessThan(1)
})

test('concurrent reads share one query, and there is none while the copy is fresh', async () => {
  const balances = startProcess()
  await database.db.transaction().execute(async (tx) => {
    await sql`lock table credit_account in access exclusive mode`.execute(tx)
    const ratio = await waitingRatio('given up', 500, async () => {
      const reads = Array.from({ length: 20 }, () => balances.read(organizationId))
      await sleep(250)
      const { rows } = await sql<{ count: string }>`select count(*) from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()`.execute(tx)
      expect(rows[0]?.count).toBe('1')
      for (const result of await Promise.allSettled(reads)) {
        expect(result).toMatchObject({
          status: 'rejected',
          reason: { code: 'credit_balance_unavailable', headers: { 'retry-after': '2' } },
        })
      }
    })
    expect(ratio).toBeGreaterThan(0.95)
    expect(ratio).toBeLessThan(3)
  })
  expect(await balances.read(organizationId)).toMatchObject({ posted: 1000n })
  await database.db.transaction().execute(async (tx) => {
    await sql`lock table credit_account in access exclusive mode`.execute(tx)
    clock.pass(5000)
    expect(await balances.read(organizationId)).toMatchObject({ posted: 1000n })
  })
})

test('a failed refresh is logged once per outage, and the next one makes up for it', async () => {
  await using proxy = await createDatabaseProxy(database.url)
  const balances = startProcess({ url: proxy.url })
  await balances.read(organizationId)
  await proxy.shut()
  for (let round = 0; round < 3; round++) await balances.refresh()
  expect(lines.filter((line) => line.includes('balance_refresh_failed'))).toHaveLength(1)
  await post(500)
  clock.pass(4000)
  expect(await balances.read(organizationId)).toMatchObject({ posted: 1000n })
  clock.pass(1001)
  await expect(balances.read(organizationId)).rejects.toMatchObject({ status: 503 })
  await proxy.reopen()
  await balances.refresh()
  expect(await balances.read(organizationId)).toMatchObject({ total: 550n, posted: 500n })
})

test('an organization without an account has no balance', async () => {
  await expect(startProcess().read('org_unknown')).rejects.toMatchObject({ status: 503 })
})
