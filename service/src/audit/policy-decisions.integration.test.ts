import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { createTestDatabase } from '#testing/test-database.ts'

import { insertEvents } from './event-store.ts'
import { buildCallEvent, type Event } from './event.ts'
import type { MatchReport } from './policy-report.ts'

// The counts of decisions by the hour follow the events, in the statement that writes them.

let database: Awaited<ReturnType<typeof createTestDatabase>>

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  await sql`truncate policy_decision_hour`.execute(database.db)
})

const at = new Date('2026-05-04T10:59:59.999Z')

const enforced: MatchReport = {
  policy_id: 'pol_1',
  version: 3,
  direction: 'request',
  mode: 'enforcing',
  score: 10_000,
  threshold: 5000,
}
const monitored: MatchReport = {
  ...enforced,
  policy_id: 'pol_2',
  direction: 'response',
  mode: 'monitoring',
}

function eventWith(
  matches: readonly MatchReport[],
  projectId: string | null = 'proj_1',
  moment = at,
): Event {
  return buildCallEvent(
    {
      organizationId: 'org_1',
      requestId: 'req_1',
      projectId,
      actor: 'key_1',
      actorType: 'project_key',
      model: null,
      target: 'messages',
      outcome: 'refused',
      usage: { credits: 0 },
      policies: {
        epoch: 1,
        refusedBy: null,
        matches,
        unevaluated: [],
        triggered: [],
        isDegraded: false,
        isJudgeDegraded: false,
        hasUnscoredParts: false,
        redactions: [],
        features: null,
      },
    },
    moment,
  )
}

const readCounts = () =>
  database.db.selectFrom('policy_decision_hour').selectAll().orderBy('policy_id').execute()

test('the matches of several events are counted, each in its hour', async () => {
  await insertEvents(database.db, [
    eventWith([enforced, monitored]),
    eventWith([enforced]),
    eventWith([]),
  ])
  const common = { organization_id: 'org_1', hour: new Date('2026-05-04T10:00:00Z'), version: 3 }
  expect(await readCounts()).toEqual([
    {
      ...common,
      policy_id: 'pol_1',
      project_id: 'proj_1',
      direction: 'request',
      mode: 'enforcing',
      decision: 'refuse',
      count: '2',
    },
    {
      ...common,
      policy_id: 'pol_2',
      project_id: 'proj_1',
      direction: 'response',
      mode: 'monitoring',
      decision: 'allow',
      count: '1',
    },
  ])
})

test('an event that is written twice is counted once', async () => {
  const event = eventWith([enforced])
  await insertEvents(database.db, [event])
  await insertEvents(database.db, [event, eventWith([enforced])])
  expect(await readCounts()).toMatchObject([{ count: '2' }])
})

test('a call without a project is counted under the empty name', async () => {
  await insertEvents(database.db, [eventWith([enforced], null)])
  expect(await readCounts()).toMatchObject([{ project_id: '' }])
})

test('events without matches count nothing', async () => {
  await insertEvents(database.db, [eventWith([])])
  expect(await readCounts()).toEqual([])
})

test('a partition that is added later is counted too', async () => {
  await sql`create table event_later partition of event
    for values from ('2026-06-01') to ('2026-07-01')`.execute(database.db)
  await insertEvents(database.db, [eventWith([enforced], null, new Date('2026-06-04T00:00:00Z'))])
  const { rows } = await sql`select from event_later`.execute(database.db)
  expect(rows).toHaveLength(1)
  expect(await readCounts()).toMatchObject([{ count: '1' }])
})
