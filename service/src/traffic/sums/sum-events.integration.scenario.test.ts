import { setTimeout as sleep } from 'node:timers/promises'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, operator } from '#audit/event.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import { withoutRest } from '#platform/background/run-task.ts'
import type { Db } from '#platform/database.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'
import { createRandom, createRandomCall } from '#traffic/testing/random-calls.ts'

import { sumAllEvents } from './sum-events.ts'

// The sums are those of the events, each counted once, although two workers sum at the same time and their connections are ended
// again and again in the middle of it. TRAFFIC_CALLS says how many calls, TRAFFIC_SEED repeats them.

const calls = sizeOf({ usual: 3000, long: 100_000, variable: 'TRAFFIC_CALLS' })
const seed = Number(process.env['TRAFFIC_SEED'] ?? Date.now() % 2 ** 31)
const random = createRandom(seed)
const organizationIds = Array.from({ length: 7 }, (_, at) => `org_${at}`)

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db

beforeAll(
  async () => {
    console.log(`sums of traffic: seed ${seed}, ${calls} calls`)
    database = await createTestDatabase()
    db = database.db
    await endConnections()
    const writing = writeCalls()
    let isWritten = false
    void writing.finally(() => (isWritten = true))
    await Promise.all([writing, sumUntil(() => isWritten), sumUntil(() => isWritten)])
    await sql`drop function end_connection cascade`.execute(db)
    await sumAllEvents(db, turn)
  },
  60_000 + 3 * calls,
)
afterAll(() => database[Symbol.asyncDispose]())

const problems = new Set<string>()
const turn = { rest: withoutRest, signal: new AbortController().signal }

async function writeCalls() {
  const now = new Date()
  for (let written = 0; written < calls;) {
    const count = Math.min(1 + random(600), calls - written)
    const events = Array.from({ length: count }, () =>
      createRandomCall(random, organizationIds, now),
    )
    const revision = buildRevisionEvent(
      {
        organizationId: organizationIds[0] ?? '',
        by: operator,
        action: 'created',
        before: null,
        after: { id: 'x', object: 'thing' },
      },
      now,
    )
    await insertEvents(db, [...events, revision])
    await numberAllEvents(db)
    written += count
  }
}

/** A worker with connections of its own, which goes on after each failure. */
async function sumUntil(isOver: () => boolean) {
  await using worker = connectPatiently({ url: database.url, poolSize: 2 })
  while (!isOver()) {
    await sumAllEvents(worker, turn).catch((error: unknown) => problems.add(String(error)))
    await sleep(5)
  }
}

/** Ends a connection in the middle of its sums now and then, as if its worker had died: before its sums, or before its position moves. */
async function endConnections() {
  await sql`create sequence ended`.execute(db)
  await sql`
    create function end_connection() returns trigger language plpgsql as $$
    begin
      if random() < 0.15 then
        perform nextval('ended'), pg_terminate_backend(pg_backend_pid());
      end if;
      return null;
    end $$`.execute(db)
  await sql`create trigger ends before insert on traffic_sum execute function end_connection()`.execute(
    db,
  )
  await sql`create trigger ends after update of summed_size on audit_head execute function end_connection()`.execute(
    db,
  )
}

/** A value just above the bound of a bucket must not be rounded into it, nor the bound itself out of it. */
const bucketOf = (name: string) => sql`
  case when (said->>${sql.lit(name)}) is null then null when (said->>${sql.lit(name)})::integer <= 1 then 0
    else least(96, ceil(round((4 * ln((said->>${sql.lit(name)})::float8) / ln(2::float8))::numeric, 9))) end::bigint`

/** What the stored sums should be, computed from the events by the database alone. */
const expected = sql`
  with call as (
    select event.organization_id, event.at, header->>'outcome' as outcome, coalesce(header->>'project_id', '') as project_id,
      coalesce(header->>'model', '') as model, header->>'actor' as key_id,
      coalesce((header->>'status')::integer, (said->>'status')::integer,
        case when header->>'outcome' in ('completed', 'blocked') then 200 end) as status,
      coalesce((said#>>'{usage,input_tokens}')::bigint, 0) as input_tokens,
      coalesce((said#>>'{usage,cached_input_tokens}')::bigint, 0) as cached_input_tokens,
      coalesce((said#>>'{usage,output_tokens}')::bigint, 0) as output_tokens,
      coalesce((said#>>'{usage,credits}')::bigint, 0) as credits,
      ${bucketOf('duration_ms')} as duration, ${bucketOf('first_token_ms')} as first_token
    from event cross join lateral (select convert_from(event.payload, 'UTF8')::jsonb as said) as read
    where kind = 'enforcement'
  )`

const histogramOf = (column: 'duration' | 'first_token') => sql`
  (select coalesce(array_agg(bucket * 1099511627776 + amount order by bucket), '{}') from (
    select bucket, count(*) as amount from unnest(array_agg(${sql.ref(column)})) as bucket where bucket is not null group by 1
  ) as cells)`

const totals = sql`count(*)::bigint, sum(input_tokens)::bigint, sum(cached_input_tokens)::bigint, sum(output_tokens)::bigint,
  sum(credits)::bigint`

test('by minute, hour and day, with all tokens, credits and histograms', async () => {
  await using reader = connectPatiently({
    url: database.url,
    poolSize: 1,
    statementTimeoutMs: 0,
  })
  const { rows } = await sql`
    ${expected}, summed as (
      select organization_id, span::traffic_span, date_trunc(span, at, 'UTC')::timestamptz(0) as start, project_id, model, outcome,
        case when status >= 500 then '5xx' when status >= 400 then '4xx' when status is null then 'none' else '2xx' end,
        ${totals}, ${histogramOf('duration')}, ${histogramOf('first_token')}
      from call cross join unnest(array['minute', 'hour', 'day']) as span
      group by 1, 2, 3, 4, 5, 6, 7
    ), stored as (select * from traffic_sum)
    (select 'missing', * from (select * from summed except select * from stored) as missing limit 3)
    union all
    (select 'wrong', * from (select * from stored except select * from summed) as wrong limit 3)`.execute(
    reader,
  )
  expect(rows).toEqual([])
})

test('by key and day', async () => {
  await using reader = connectPatiently({
    url: database.url,
    poolSize: 1,
    statementTimeoutMs: 0,
  })
  const { rows } = await sql`
    ${expected}, summed as (
      select organization_id, (at at time zone 'UTC')::date, key_id, outcome, ${totals} from call group by 1, 2, 3, 4
    ), stored as (select * from traffic_key_day)
    (select * from summed except select * from stored limit 3) union all
    (select * from stored except select * from summed limit 3)`.execute(reader)
  expect(rows).toEqual([])
})

test('every event counts once, and workers were killed', async () => {
  const { rows } = await sql`
    select (select sum(calls)::integer from traffic_sum where span = 'day') as days,
      (select sum(calls)::integer from traffic_key_day) as keys,
      (select count(*)::integer from audit_head where summed_size <> org_seq) as behind,
      (select last_value::integer from ended) as ended`.execute(db)
  expect(rows).toMatchObject([{ days: calls, keys: calls, behind: 0 }])
  console.log(JSON.stringify(rows))
  expect([...problems].filter((text) => !/terminat|Another worker/.test(text))).toEqual([])
  expect((rows[0] as { ended: number }).ended).toBeGreaterThan(1)
})
