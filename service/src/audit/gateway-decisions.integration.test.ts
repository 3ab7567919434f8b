import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { createTestDatabase } from '#testing/test-database.ts'

import { insertEvents } from './event-store.ts'
import { buildCallEvent, type Event, type EventHeader } from './event.ts'
import { nothingFound } from './policy-report.ts'

// The counts of the configuration's decisions by the minute follow the events, in the statement that writes them.

let database: Awaited<ReturnType<typeof createTestDatabase>>

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  await sql`truncate gateway_decision_minute`.execute(database.db)
})

const at = new Date('2026-05-04T10:59:59.999Z')

function eventWith(members: EventHeader, moment = at, organizationId = 'org_1'): Event {
  const event = buildCallEvent(
    {
      organizationId,
      requestId: 'req_1',
      projectId: null,
      actor: 'key_1',
      actorType: 'project_key',
      model: null,
      target: 'messages',
      outcome: 'completed',
      usage: { credits: 0 },
      policies: { ...nothingFound, epoch: 3 },
    },
    moment,
  )
  return { ...event, header: { ...event.header, ...members } }
}

async function readCounts() {
  const rows = await database.db
    .selectFrom('gateway_decision_minute')
    .select([
      'organization_id',
      sql<string>`to_char(minute at time zone 'UTC', 'HH24:MI:SS')`.as('minute'),
      'policy_epoch',
      'arm',
      'decision',
      'count',
    ])
    .orderBy('organization_id')
    .orderBy('minute')
    .orderBy('policy_epoch')
    .orderBy('arm')
    .orderBy('decision')
    .execute()
  return rows.map((row) => Object.values(row).join(' '))
}

const canary = { rollout_mode: 'canary' }

test('calls are counted by minute, epoch, arm and decision; those that no configuration judged nowhere', async () => {
  await insertEvents(database.db, [
    eventWith(canary),
    eventWith(canary),
    eventWith({ ...canary, decision: 'refuse', reason_code: 'REFUSE' }),
    eventWith({ rollout_mode: 'shadow', decision: 'rewrite' }),
    eventWith({ rollout_mode: 'enforced', policy_epoch: 4 }),
    eventWith(canary, new Date('2026-05-04T11:00:00Z')),
    eventWith(canary, at, 'org_2'),
    eventWith({}),
  ])
  await insertEvents(database.db, [eventWith(canary)])
  expect(await readCounts()).toEqual([
    'org_1 10:59:00 3 shadow rewrite 1',
    'org_1 10:59:00 3 canary allow 3',
    'org_1 10:59:00 3 canary refuse 1',
    'org_1 10:59:00 4 enforced allow 1',
    'org_1 11:00:00 3 canary allow 1',
    'org_2 10:59:00 3 canary allow 1',
  ])
})

test('an event that is written twice counts once', async () => {
  const event = eventWith(canary)
  await insertEvents(database.db, [event])
  await insertEvents(database.db, [event, eventWith(canary)])
  expect(await readCounts()).toEqual(['org_1 10:59:00 3 canary allow 2'])
})

test('what a policy of the organization refused counts as what the configuration says', async () => {
  await insertEvents(database.db, [
    eventWith({ ...canary, decision: 'refuse', gateway_decision: 'allow' }),
  ])
  expect(await readCounts()).toEqual(['org_1 10:59:00 3 canary allow 1'])
})

test.each<EventHeader>([
  { rollout_mode: 'rollback' },
  { rollout_mode: 'outside' },
  { rollout_mode: null },
  { ...canary, decision: 'other' },
  { ...canary, decision: null },
  { ...canary, policy_epoch: null },
  { ...canary, phase: 'monitoring' },
  { ...canary, decision: 'refuse', reason_code: 'USER_QUOTA_EXCEEDED' },
  { ...canary, decision: 'refuse', reason_code: 'PROJECT_QUOTA_EXCEEDED' },
])('%j is written, and not counted', async (members) => {
  await insertEvents(database.db, [eventWith(members)])
  expect(await readCounts()).toEqual([])
})

test('a persisted simulation is not counted', async () => {
  await insertEvents(database.db, [{ ...eventWith(canary), kind: 'simulation' }])
  expect(await readCounts()).toEqual([])
})
