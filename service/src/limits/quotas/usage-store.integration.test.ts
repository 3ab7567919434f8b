import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { ApiError } from '#platform/api-error.ts'
import { transact } from '#platform/transaction.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { type CalendarWindow, periodAt } from './calendar.ts'
import { createQuotaLoader } from './load-quotas.ts'
import type { QuotaCounter } from './quota.ts'
import { readQuotaUsage, sweepQuotaUsage } from './usage-store.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>

beforeAll(async () => {
  database = await createTestDatabase()
  await sql`insert into quota_usage values
    ('org_1', 'user', 'ann', '2026-10-31', 1, 10, 100),
    ('org_1', 'user', 'ann', '2026-11-01', 2, 20, 200),
    ('org_1', 'user', 'ann', '2026-11-15', 4, 40, 400),
    ('org_1', 'user', 'ann', '2026-11-16', 8, 80, 800),
    ('org_1', 'user', 'ann', '2026-12-01', 16, 160, 1600),
    ('org_1', 'project', 'ann', '2026-11-16', 32, 320, 3200),
    ('org_2', 'user', 'ann', '2026-11-16', 64, 640, 6400)`.execute(database.db)
})
afterAll(() => database[Symbol.asyncDispose]())

const noLimits = { requests: Infinity, tokens: Infinity, credits: Infinity }
const counterOf = (window: CalendarWindow, subject = 'ann'): QuotaCounter => ({
  scope: 'user',
  subject,
  window,
  period: periodAt(window, Date.parse('2026-11-16T12:00:00Z')),
  field: 'u1',
  limits: noLimits,
})

test('the days of a period are added up, for each counter that is asked for', async () => {
  const asked = [counterOf('daily'), counterOf('monthly', 'nobody'), counterOf('monthly')].map(
    (counter) => ({ organizationId: 'org_1', counter }),
  )
  expect(await readQuotaUsage(database.db, asked)).toEqual([
    { requests: 8, tokens: 80, credits: 800 },
    { requests: 0, tokens: 0, credits: 0 },
    { requests: 14, tokens: 140, credits: 1400 },
  ])
})

test('many calls share statements, and each gets the amounts of its own counters', async () => {
  const load = createQuotaLoader({ db: database.db })
  const loaded = await Promise.all(
    Array.from({ length: 500 }, async (_, index) => {
      const counters = [counterOf(index % 2 === 0 ? 'weekly' : 'monthly')]
      return [...(await load(`org_${1 + (index % 4 < 2 ? 0 : 1)}`, counters)).values()][0]?.requests
    }),
  )
  for (const [index, requests] of loaded.entries()) {
    expect(requests).toBe([8, 14, 64, 64][index % 4])
  }
})

test('without the database the answer is 503', async () => {
  await using elsewhere = await createTestDatabase()
  await sql`drop table quota_usage cascade`.execute(elsewhere.db)
  const load = createQuotaLoader({ db: elsewhere.db })
  const error = await load('org_1', [counterOf('daily')]).catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(ApiError)
  expect(error).toMatchObject({ status: 503, code: 'dependency_unavailable' })
})

test('days before a date are swept, some at a time', async () => {
  const before = new Date('2026-11-16T12:00:00Z')
  const sweep = () => transact(database.db, (tx) => sweepQuotaUsage(tx, before, 2))
  expect([await sweep(), await sweep(), await sweep()]).toEqual([2, 1, 0])
  const { rows } = await sql<{ count: number }>`select count(*)::int from quota_usage`.execute(
    database.db,
  )
  expect(rows).toEqual([{ count: 4 }])
})
