import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { transact } from '#platform/transaction.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { seedQuotaUsage } from './quota-usage-store.ts'

test('a budget that begins within a month knows what was used before', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await sql`insert into usage_day
      (organization_id, day, project_id, key_id, model, requests, input_tokens, output_tokens, credits)
    values ('org_1', '2026-10-31', 'proj_1', 'key_1', 'm', 9, 9, 9, 9),
      ('org_1', '2026-11-01', 'proj_1', 'key_1', 'm', 1, 10, 5, 100),
      ('org_1', '2026-11-01', 'proj_2', 'key_2', 'm', 2, 20, 6, 200),
      ('org_1', '2026-11-02', 'proj_1', 'key_2', 'n', 3, 30, 7, 300),
      ('org_2', '2026-11-02', 'proj_1', 'key_1', 'n', 4, 40, 8, 400)`.execute(db)
  await sql`insert into quota_usage values ('org_1', 'key', 'key_2', '2026-11-02', 7, 7, 7)`.execute(
    db,
  )
  const subjects = [
    { scope: 'organization', subject: '' },
    { scope: 'project', subject: 'proj_1' },
    { scope: 'key', subject: 'key_2' },
  ] as const
  const seed = () =>
    transact(db, async (tx) => {
      for (const each of subjects) {
        await seedQuotaUsage(tx, { organizationId: 'org_1', ...each }, '2026-11-01')
      }
    })
  await seed()
  await seed() // changes nothing
  const { rows } = await sql<{ text: string }>`
    select concat_ws(' ', organization_id, scope, window_start, requests, tokens, credits) as text
    from quota_usage order by scope, window_start`.execute(db)
  expect(rows.map(({ text }) => text)).toEqual([
    'org_1 organization 2026-11-01 3 41 300',
    'org_1 organization 2026-11-02 3 37 300',
    'org_1 project 2026-11-01 1 15 100',
    'org_1 project 2026-11-02 3 37 300',
    'org_1 key 2026-11-01 2 26 200',
    'org_1 key 2026-11-02 7 7 7',
  ])
})
