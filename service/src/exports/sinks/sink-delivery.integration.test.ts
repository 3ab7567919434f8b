import { randomBytes } from 'node:crypto'

import {
  listExportDeadLetters,
  replayExport,
  requeueExportDeadLetters,
  testExport,
} from '@gatehouse/contract/exports/export-sink'
import { startDouble } from '@gatehouse/tools/destinations/double'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import type { DestinationType } from '#exports/destinations/destination.ts'
import { createDestinations } from '#exports/destinations/destinations.ts'
import { outcomeOfAnswer } from '#exports/destinations/outcome.ts'
import { createEgress } from '#platform/egress.ts'
import { createSecretBox } from '#platform/secrets.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

import { openSinkConfig } from './open-config.ts'
import { rewrapSinkSecrets } from './rewrap-secrets.ts'
import { createTestSender, type SendTest } from './send-test.ts'
import { findSink } from './sink-store.ts'
import { sinkCalls, splunk, token, writeLog } from './testing/sink-calls.ts'

async function openApi({ sendTest }: { sendTest?: SendTest } = {}) {
  const clock = createTestClock()
  const api = await createTestApi({
    now: clock.now,
    findAddresses: async () => [],
    change: (house) => (sendTest ? { ...house, exports: { ...house.exports, sendTest } } : house),
  })
  return { api, clock, calls: sinkCalls(api), db: api.db }
}
type Opened = Awaited<ReturnType<typeof openApi>>

const readCursors = async ({ db }: Opened) => {
  const { rows } = await sql`
    select is_replay, org_seq::integer as org_seq, end_seq::integer as end_seq, signed_size::integer as signed_size,
      day::text as day, next_at <= now() as is_due
    from export_cursor order by id`.execute(db)
  return rows
}
const setDelivered = (opened: Opened, orgSeq: number) =>
  sql`update export_cursor set org_seq = ${orgSeq} where not is_replay`.execute(opened.db)
const actionsOf = async ({ db }: Opened) => {
  const { rows } = await sql<{ header: Record<string, unknown> }>`
    select header from event where header->>'object' = 'policy_gateway.export' order by seq`.execute(
    db,
  )
  return rows.map(({ header }) => header)
}

const morning = (minute: number) => `2026-05-30T10:0${minute}:00.000Z`
const log = [
  { at: morning(1) },
  { at: morning(3) },
  { at: morning(2) }, // sequence order is not the order of time
  { at: morning(5) },
  { at: '2026-05-31T23:59:59.000Z', day: '2026-06-01' }, // numbered after midnight
]

test('a new sink begins at the end of the log', async () => {
  const opened = await openApi()
  await writeLog(opened.api, log)
  const { export: made } = await opened.calls.create(splunk)
  expect([made.pending_events, made.lag_seconds]).toEqual([0, 0])
  expect(await readCursors(opened)).toEqual([
    {
      is_replay: false,
      org_seq: 5,
      end_seq: null,
      signed_size: 1,
      day: '2026-06-01',
      is_due: true,
    },
  ])
})

test('a sink says how many events are pending, since when, and how it goes', async () => {
  const opened = await openApi()
  const { id } = (await opened.calls.create(splunk)).export
  await writeLog(opened.api, log)
  await sql`
    update export_cursor set org_seq = 4, day = '2026-05-30', state = 'retrying', last_error = ${'x'.repeat(600)},
      last_error_at = '2026-06-01T11:00:00.900Z', last_success_at = '2026-06-01T10:00:00.100Z'`.execute(
    opened.db,
  )
  await sql`
    insert into export_dead_letter
    select ${id}, n, '2026-05-30', gen_random_uuid(), 'e', 1, now() from generate_series(1, 1005) n`.execute(
    opened.db,
  )
  const { export: sink } = await opened.calls.read(id)
  expect(sink).toMatchObject({
    state: 'retrying',
    pending_events: 1,
    lag_seconds: 12 * 3600 + 1,
    last_success_at: '2026-06-01T10:00:00Z',
    last_error_at: '2026-06-01T11:00:00Z',
    last_error: 'x'.repeat(500),
    dead_letters: 1000,
  })
  expect((await opened.calls.list()).data).toEqual([sink])
})

async function replay({ api }: Opened, id: string, body: object) {
  const { status, body: answer } = await api.send(replayExport, { params: { export_id: id }, body })
  return { status, error: answer.error, ...(answer as unknown as { replay: object }) }
}

test('a replay is a cursor over the events of its range that were delivered', async () => {
  const opened = await openApi()
  const { id } = (await opened.calls.create(splunk)).export
  await writeLog(opened.api, log)
  await setDelivered(opened, 4)
  const ranges: [object, object][] = [
    [
      { from: morning(2), to: morning(4) },
      { from_seq: 2, to_seq: 3, events: 2 },
    ],
    [
      { from: morning(1), to: morning(3) },
      { from_seq: 1, to_seq: 3, events: 3 },
    ],
    [{ from: '2026-05-30' }, { from_seq: 1, to_seq: 4, events: 4 }],
    [{ from: '2026-05-31' }, { from_seq: null, to_seq: null, events: 0 }],
    [
      { from: '2026-05-30', to: '2026-05-30' },
      { from_seq: null, to_seq: null, events: 0 },
    ],
    [
      { from: '0001-01-01T00:00:00Z', to: '0002-01-01T00:00:00Z' },
      { from_seq: null, to_seq: null, events: 0 },
    ],
  ]
  for (const [range, expected] of ranges) {
    expect([range, await replay(opened, id, range)]).toEqual([
      range,
      { status: 200, error: undefined, replay: expected },
    ])
  }
  await setDelivered(opened, 5)
  const late = await replay(opened, id, { from: '2026-05-31T12:00:00+02:00' })
  expect(late.replay).toEqual({ from_seq: 5, to_seq: 5, events: 1 })
  const cursor = { is_replay: true, signed_size: 0, is_due: true }
  expect((await readCursors(opened)).slice(1)).toEqual([
    { ...cursor, org_seq: 1, end_seq: 3, day: '2026-05-30' },
    { ...cursor, org_seq: 0, end_seq: 3, day: '2026-05-30' },
    { ...cursor, org_seq: 0, end_seq: 4, day: '2026-05-30' },
    { ...cursor, org_seq: 4, end_seq: 5, day: '2026-06-01' },
  ])
  const events = (await actionsOf(opened)).filter(({ action }) => action === 'replayed')
  expect(events).toHaveLength(4)
  expect(events[0]).toMatchObject({
    object_id: id,
    from_seq: 2,
    to_seq: 3,
    replay_from: morning(2),
  })
})

test('409: a sixth replay at a time; one that has ended makes room', async () => {
  const opened = await openApi()
  const { id } = (await opened.calls.create(splunk)).export
  await writeLog(opened.api, log)
  await setDelivered(opened, 5)
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => replay(opened, id, { from: '2026-05-01' })),
  )
  const refused = answers.filter(({ status }) => status !== 200)
  expect(refused.map(({ status, error }) => [status, error.code])).toEqual([[409, 'limit_reached']])
  await sql`
    update export_cursor set org_seq = end_seq where id = (select max(id) from export_cursor)`.execute(
    opened.db,
  )
  expect((await replay(opened, id, { from: '2026-05-01' })).status).toBe(200)
})

test.each([
  [{}, 'missing_field', 'body.from'],
  [{ from: 'yesterday' }, 'invalid_parameter', 'body.from'],
  [{ from: '2026-05-01', to: 5 }, 'invalid_parameter', 'body.to'],
])('422: a replay %o is %s at %s', async (body, code, param) => {
  const opened = await openApi()
  const { id } = (await opened.calls.create(splunk)).export
  const { status, error } = await replay(opened, id, body)
  expect([status, error.code, error.param]).toEqual([422, code, param])
})

/** Dead letters of these numbers, and how to ask for them. */
async function openWithDeadLetters(numbers: readonly number[]) {
  const opened = await openApi()
  const { id } = (await opened.calls.create(splunk)).export
  const entries = Array.from({ length: Math.max(...numbers) }, () => ({ at: morning(1) }))
  const eventIds = await writeLog(opened.api, entries)
  for (const number of numbers) {
    await sql`
      insert into export_dead_letter
      values (${id}, ${number}, '2026-05-30', ${eventIds[number - 1]}::uuid, 'Bad', 3, '2026-05-30T10:09:00.5Z')`.execute(
      opened.db,
    )
  }
  const params = { export_id: id }
  const list = (query: Record<string, string> = {}) =>
    opened.api.send(listExportDeadLetters, { params, query })
  const requeue = async (body: object) =>
    (await opened.api.send(requeueExportDeadLetters, { params, body })).body as unknown as {
      requeued: number
      error?: { code: string; param: string }
    }
  const idOf = (number: number) => eventIds[number - 1]!
  return { ...opened, id, list, requeue, idOf }
}

test('dead letters are listed by the number of their event', async () => {
  const { list, requeue, idOf } = await openWithDeadLetters([2, 3, 7])
  const { body } = await list()
  expect(body.data[0]).toEqual({
    id: idOf(2),
    object: 'policy_gateway.export.dead_letter',
    event_id: idOf(2),
    org_seq: 2,
    error: 'Bad',
    attempts: 3,
    created_at: '2026-05-30T10:09:00Z',
  })
  const idsIn = async (query: Record<string, string>) =>
    (await list(query)).body.data.map(({ id }) => id)
  expect(await idsIn({})).toEqual([2, 3, 7].map(idOf))
  expect(await idsIn({ order: 'desc', limit: '2' })).toEqual([7, 3].map(idOf))
  expect(await idsIn({ after: idOf(2) })).toEqual([3, 7].map(idOf))
  await requeue({ event_ids: [idOf(3)] })
  expect(await idsIn({ after: idOf(3) })).toEqual([idOf(7)])
  for (const after of ['x', '019a4330-1e80-7c3a-9b51-2f60d4c1a7e8']) {
    expect((await list({ after })).body.error.code).toBe('invalid_cursor')
  }
})

test('dead letters are requeued: neighbours share a cursor, and none stays', async () => {
  const opened = await openWithDeadLetters([2, 3, 4, 7, 9])
  const { requeue, idOf, list } = opened
  expect(await requeue({ event_ids: [idOf(9), idOf(1)] })).toEqual({ requeued: 1 })
  expect(await requeue({})).toEqual({ requeued: 4 })
  expect(await requeue({})).toEqual({ requeued: 0 })
  expect((await list()).body.data).toEqual([])
  const cursor = { is_replay: true, signed_size: 0, is_due: true, day: '2026-05-30' }
  expect((await readCursors(opened)).slice(1)).toEqual([
    { ...cursor, org_seq: 8, end_seq: 9 },
    { ...cursor, org_seq: 1, end_seq: 4 },
    { ...cursor, org_seq: 6, end_seq: 7 },
  ])
  const requeued = (await actionsOf(opened)).filter(({ action }) => action === 'requeued')
  expect(requeued.map(({ requeued }) => requeued)).toEqual([1, 4])
})

test('at most 100 dead letters are requeued at a time', async () => {
  const { requeue, idOf } = await openWithDeadLetters(
    Array.from({ length: 103 }, (_, index) => index + 1),
  )
  const tooMany = await requeue({ event_ids: Array.from({ length: 101 }, () => idOf(1)) })
  expect(tooMany.error).toMatchObject({ code: 'invalid_parameter', param: 'body.event_ids' })
  expect(await requeue({})).toEqual({ requeued: 100 })
  expect(await requeue({})).toEqual({ requeued: 3 })
})

/** Posts the JSON of each item, and repeats the answer of the destination in its error. */
const posting: DestinationType<{ endpoint: string; token: string }> = {
  limits: { itemsMax: 1, bytesMax: 1_000_000 },
  addressOf: ({ endpoint }) => endpoint,
  async send({ endpoint, token }, batch, { request }) {
    const headers = { authorization: `Splunk ${token}` }
    const body = batch.map(({ json }) => json).join('\n')
    const answer = await request(endpoint, { method: 'POST', headers, body })
    return answer.status === 200
      ? { kind: 'delivered' }
      : outcomeOfAnswer(answer, answer.body.toString())
  },
}

test('a test sends one event with the stored secret, and reports what the destination says', async () => {
  const received: { authorization: string | undefined; event: Record<string, unknown> }[] = []
  await using double = await startDouble(({ headers, body }) => {
    const { authorization } = headers
    received.push({ authorization, event: JSON.parse(body.toString()) as Record<string, unknown> })
    return { status: 200 }
  })
  const privateTargets = [new URL(double.endpoint).host]
  const egress = createEgress({ privateTargets, ca: [double.ca] })
  onTestFinished(() => egress.close())
  const clock = createTestClock()
  const { api, calls } = await openApi({
    sendTest: createTestSender({
      // The saved address is a public one; the socket is that of the double.
      destinations: { ...createDestinations(), splunk_hec: posting as never },
      request: (_, call) =>
        egress.request(double.endpoint, { ...call, deadlineMs: 5000, answerLimitBytes: 65_536 }),
      now: clock.now,
    }),
  })
  const { id } = (await calls.create({ ...splunk, enabled: false })).export
  const params = { export_id: id }
  const tested = async () => {
    const { status, body } = await api.send(testExport, { params })
    return [status, body] as const
  }
  const duration_ms = expect.any(Number) as number
  expect(await tested()).toEqual([200, { delivered: true, error: null, duration_ms }])
  expect(received).toEqual([
    {
      authorization: `Splunk ${token}`,
      event: expect.objectContaining({
        event_type: 'test',
        org_id: api.organization.organizationId,
        org_seq: 0,
        object_id: id,
      }) as object,
    },
  ])
  double.intervene(() => ({ status: 403, body: `No such token:\n ${token}` }))
  const error = 'The destination answered 403: No such token: ***'
  expect(await tested()).toEqual([200, { delivered: false, error, duration_ms }])
  double.intervene(() => 'reset')
  const reset = 'The destination closed the connection.'
  expect(await tested()).toEqual([200, { delivered: false, error: reset, duration_ms }])
})

test('secrets are sealed again by the current master key, once, and open as before', async () => {
  const { api, calls, db } = await openApi()
  const { organizationId } = api.organization
  const [old] = api.house.config.MASTER_KEYS
  const newest = { version: 7, bytes: randomBytes(32) }
  const rotated = createSecretBox([newest, old])
  const elastic = { endpoint: 'https://e.example.com', api_key: token }
  const ids = [
    (await calls.create(splunk)).export.id,
    (await calls.create({ type: 'elastic', config: elastic })).export.id,
  ]
  await calls.create({ type: 'otlp_logs', config: { endpoint: 'https://o.example.com' } })
  expect(await rewrapSinkSecrets(db, rotated)).toEqual({ sinks: 2, rewrapped: 2, unreadable: [] })
  expect(await rewrapSinkSecrets(db, rotated)).toEqual({ sinks: 2, rewrapped: 0, unreadable: [] })
  const alone = createSecretBox([newest])
  const configs = await Promise.all(
    ids.map(async (id) => openSinkConfig((await findSink(db, organizationId, id))!, alone)),
  )
  expect(configs).toMatchObject([
    { ...splunk.config, ack: false },
    { ...elastic, namespace: 'default' },
  ])
  const another = createSecretBox([{ version: 8, bytes: randomBytes(32) }])
  const { unreadable } = await rewrapSinkSecrets(db, another)
  expect(unreadable).toEqual(ids.toSorted())
})

test('a sealed secret cannot be moved to another sink', async () => {
  const { api, calls, db } = await openApi()
  const { id } = (await calls.create(splunk)).export
  const { id: other } = (await calls.create(splunk)).export
  await sql`
    update export_sink set secrets = (select secrets from export_sink where id = ${id}) where id = ${other}`.execute(
    db,
  )
  const sink = await findSink(db, api.organization.organizationId, other)
  expect(() => openSinkConfig(sink!, api.house.mutations.secretBox)).toThrow(/MASTER_KEYS/)
})
