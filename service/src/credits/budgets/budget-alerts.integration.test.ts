import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { createMetrics } from '#platform/metrics.ts'
import { silentLog } from '#testing/silent-log.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { createBudgetAlerts } from './budget-alerts.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  await sql`truncate budget_alert`.execute(database.db)
})

function openProcess() {
  const metrics = createMetrics()
  const note = createBudgetAlerts({
    db: database.db,
    now: () => new Date('2026-11-16T12:00:00Z'),
    log: silentLog,
    metrics,
  })
  const written = async () =>
    (await metrics.budgetAlerts.get()).values.reduce((sum, { value }) => sum + value, 0)
  return { note, written }
}

const usageOf = (organizationId: string, used: number, budget = 1000) => ({
  organizationId,
  scope: 'project' as const,
  subject: 'proj_1',
  month: '2026-11-01',
  budget,
  alertPercents: [50, 80, 100],
  used,
})

async function readAlerts(organizationId: string) {
  const { rows } = await sql<{ kind: string; header: Record<string, unknown> }>`
    select kind, header from event where organization_id = ${organizationId}
    order by (header->>'percent')::int, at`.execute(database.db)
  return rows
}

test('each share is announced once, however many processes see it and however often', async () => {
  const [one, other] = [openProcess(), openProcess()]
  await one.note([usageOf('org_1', 499)])
  expect(await readAlerts('org_1')).toEqual([])
  await Promise.all([one, other, one].map(({ note }) => note([usageOf('org_1', 801)])))
  await other.note([usageOf('org_1', 999)])
  const alerts = await readAlerts('org_1')
  expect(alerts.map(({ header }) => header['percent'])).toEqual([50, 80])
  expect(alerts[1]).toEqual({
    kind: 'revision',
    header: {
      action: 'budget_alert',
      object: 'monthly_budget',
      object_id: 'proj_1',
      actor: 'gatehouse',
      actor_type: 'gatehouse',
      request_id: null,
      scope: 'project',
      month: '2026-11-01',
      budget_credits: 1000,
      used_credits: 801,
      percent: 80,
    },
  })
  expect((await one.written()) + (await other.written())).toBe(2)
})

test('a process that starts later announces nothing again; another budget or month does', async () => {
  await openProcess().note([usageOf('org_2', 1000)])
  await openProcess().note([usageOf('org_2', 1000)])
  expect(await readAlerts('org_2')).toHaveLength(3)
  await openProcess().note([usageOf('org_2', 1000, 2000)])
  expect(await readAlerts('org_2')).toHaveLength(4)
  await openProcess().note([{ ...usageOf('org_2', 500), month: '2026-12-01' }])
  expect(await readAlerts('org_2')).toHaveLength(5)
})

test('an alert that the database does not take is written with the next call', async () => {
  const { note } = openProcess()
  await sql`alter table budget_alert rename to moved_away`.execute(database.db)
  await note([usageOf('org_3', 500)])
  await sql`alter table moved_away rename to budget_alert`.execute(database.db)
  await note([usageOf('org_3', 500)])
  expect(await readAlerts('org_3')).toHaveLength(1)
})
