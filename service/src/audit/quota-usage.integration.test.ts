import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { createTestDatabase } from '#testing/test-database.ts'

import { insertEvents } from './event-store.ts'
import { buildCallEvent, type CallOutcome, type CountedReport, type Event } from './event.ts'

// The usage of quotas follows the events, in the statement that writes them.

let database: Awaited<ReturnType<typeof createTestDatabase>>

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  await sql`truncate quota_usage`.execute(database.db)
})

const ann = { scope: 'user', subject: 'ann, "the first"' }
const project = { scope: 'project', subject: 'proj_1' }
const organization = { scope: 'organization', subject: '' }

type Options = { outcome?: CallOutcome; requestId?: string; organizationId?: string }

const eventOf = (quotas: CountedReport | null, options: Options = {}): Event =>
  buildCallEvent(
    {
      organizationId: options.organizationId ?? 'org_1',
      requestId: options.requestId ?? 'req_1',
      projectId: 'proj_1',
      actor: 'key_1',
      actorType: 'project_key',
      model: null,
      target: 'messages',
      outcome: options.outcome ?? 'completed',
      usage: { credits: 0 },
      policies: null,
      quotas,
    },
    new Date(),
  )

const counted = (subjects: CountedReport['subjects'], tokens = 10, credits = 3) => ({
  day: '2026-11-16',
  subjects,
  tokens,
  credits,
})

async function readUsage() {
  const rows = await database.db
    .selectFrom('quota_usage')
    .select([
      'organization_id',
      'scope',
      'subject',
      sql<string>`window_start::text`.as('day'),
      'requests',
      'tokens',
      'credits',
    ])
    .orderBy('organization_id')
    .orderBy('scope')
    .orderBy('window_start')
    .execute()
  return rows.map((row) => Object.values(row).join(' '))
}

test('calls are added up for each subject and day; those without quotas count nowhere', async () => {
  await insertEvents(database.db, [
    eventOf(counted([ann, project])),
    eventOf(counted([ann], 0, 0), { outcome: 'refused' }),
    eventOf({ ...counted([organization]), day: '2026-11-17' }, { organizationId: 'org_2' }),
    eventOf(null),
  ])
  await insertEvents(database.db, [eventOf(counted([project], 5, 2 ** 40))])
  expect(await readUsage()).toEqual([
    'org_1 project proj_1 2026-11-16 2 15 1099511627779',
    'org_1 user ann, "the first" 2026-11-16 2 10 3',
    'org_2 organization  2026-11-17 1 10 3',
  ])
})

test('an event that is written twice counts once', async () => {
  const event = eventOf(counted([ann]))
  await insertEvents(database.db, [event])
  await insertEvents(database.db, [event, eventOf(counted([ann]))])
  expect(await readUsage()).toEqual(['org_1 user ann, "the first" 2026-11-16 2 20 6'])
})

test('a call that is settled after its hold was swept counts as one request', async () => {
  const requestId = 'req_swept'
  await sql`insert into organization (id, name, created_at) values ('org_1', 'Some', now())`.execute(
    database.db,
  )
  await sql`insert into ledger_entry (organization_id, id, debit, credit, amount, kind, meta)
    values ('org_1', ${requestId}, 'wallet', 'revenue', 0, 'void_unknown', '{}')`.execute(
    database.db,
  )
  await insertEvents(database.db, [
    eventOf(counted([ann], 0, 0), { requestId, outcome: 'unknown' }),
  ])
  await insertEvents(database.db, [eventOf(counted([ann]), { requestId, outcome: 'completed' })])
  expect(await readUsage()).toEqual(['org_1 user ann, "the first" 2026-11-16 1 10 3'])
})
