import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'

import { systemClock } from '#platform/clock.ts'
import { connectDatabase } from '#platform/database.ts'
import { createLog } from '#platform/log.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import { createDatabaseDoor, createTestClock } from '#testing/test-gateway.ts'

import { createBalanceCopies } from './balance-copies.ts'

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
  const balances = createBalanceCopies({ db, now, log })
  open.push(balances, { stop: () => db.destroy() })
  return balances
}

test('a change is seen by another process within 5 s, without being told', async () => {
  const [one, other] = [startProcess({ now: systemClock }), startProcess({ now: systemClock })]
  for (const each of [one, other]) {
    expect(await each.read(organizationId)).toMatchObject({
      total: 1050n,
      used: 50n,
      remaining: 900n,
    })
  }
  await post(700)
  const changedAt = performance.now()
  one.note(organizationId, 600n)
  expect(await one.read(organizationId)).toMatchObject({ total: 1050n, remaining: 600n })
  await vi.waitUntil(async () => (await other.read(organizationId)).remaining === 600n, {
    ...{ timeout: 6000, interval: 20 },
  })
  expect(performance.now() - changedAt).toBeLessThan(5000)
})

test('one question for all who ask at once, and none while the copy is fresh', async () => {
  const balances = startProcess()
  await database.db.transaction().execute(async (tx) => {
    await sql`lock table credit_account in access exclusive mode`.execute(tx)
    const startedAt = performance.now()
    const reads = Array.from({ length: 20 }, () => balances.read(organizationId))
    await sleep(250)
    const { rows } = await sql<{ count: string }>`select count(*) from pg_stat_activity
      where wait_event_type = 'Lock' and datname = current_database()`.execute(tx)
    expect(rows[0]?.count).toBe('1')
    for (const result of await Promise.allSettled(reads)) {
      expect(result).toMatchObject({
        ...{ status: 'rejected' },
        reason: { code: 'credit_balance_unavailable', headers: { 'retry-after': '2' } },
      })
    }
    expect(performance.now() - startedAt).toBeGreaterThan(480)
    expect(performance.now() - startedAt).toBeLessThan(1500)
  })
  expect(await balances.read(organizationId)).toMatchObject({ remaining: 900n })
  await database.db.transaction().execute(async (tx) => {
    await sql`lock table credit_account in access exclusive mode`.execute(tx)
    clock.pass(5000)
    expect(await balances.read(organizationId)).toMatchObject({ remaining: 900n })
  })
})

test('a lost refresh is told once per outage, and the next one makes up for it', async () => {
  await using door = await createDatabaseDoor(database.url)
  const balances = startProcess({ url: door.url })
  await balances.read(organizationId)
  await door.shut()
  for (let round = 0; round < 3; round++) await balances.refresh()
  expect(lines.filter((line) => line.includes('refreshing balances'))).toHaveLength(1)
  await post(500)
  clock.pass(4000)
  expect(await balances.read(organizationId)).toMatchObject({ remaining: 900n })
  clock.pass(1001)
  await expect(balances.read(organizationId)).rejects.toMatchObject({ status: 503 })
  await door.reopen()
  await balances.refresh()
  expect(await balances.read(organizationId)).toMatchObject({ total: 550n, remaining: 400n })
})

test('an organization without an account has no balance', async () => {
  await expect(startProcess().read('org_unknown')).rejects.toMatchObject({ status: 503 })
})
