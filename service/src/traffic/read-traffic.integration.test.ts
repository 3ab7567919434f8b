import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { readTraffic, type Traffic } from '@gatehouse/contract/organization/traffic'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { insertEvents } from '#audit/event-store.ts'
import { buildCallEvent, type CallReport } from '#audit/event.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import { withoutRest } from '#platform/background/run-task.ts'
import { transact } from '#platform/transaction.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

import { rowsMax } from './sums/bound-rows.ts'
import { sumAllEvents } from './sums/sum-events.ts'
import { sweepKeySums, sweepSums } from './sums/sum-store.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi({ now: createTestClock().now }) // 2026-06-01, 12:00
})

type Call = Partial<CallReport> & { at?: string }

async function write(calls: readonly Call[]) {
  const events = calls.map(({ at = '2026-06-01T11:30:00Z', ...call }) =>
    buildCallEvent(
      {
        organizationId: api.organization.organizationId,
        requestId: 'req_1',
        projectId: 'proj_1',
        actor: 'key_1',
        actorType: 'project_key',
        model: 'm',
        target: 'messages',
        outcome: 'completed',
        usage: { input_tokens: 100, cached_input_tokens: 10, output_tokens: 5, credits: 7 },
        policies: null,
        ...call,
      },
      new Date(at),
    ),
  )
  for (let from = 0; from < events.length; from += 1000) {
    await insertEvents(api.db, events.slice(from, from + 1000))
  }
  await numberAllEvents(api.db)
  await sumAllEvents(api.db, { rest: withoutRest, signal: new AbortController().signal })
}

async function read(query: Record<string, string> = {}, credential?: string) {
  const answer = await api.send(readTraffic, { query, ...(credential && { credential }) })
  return { ...answer, body: answer.body as unknown as Traffic & typeof answer.body }
}

const shortOf = (items: readonly { group: string | null; is_other: boolean; calls: number }[]) =>
  items.map(({ group, is_other, calls }) => [is_other ? 'others' : group, calls])

test('200: without calls there is nothing', async () => {
  const { status, body } = await read()
  expect([status, body.data, body.total]).toEqual([200, [], []])
  expect((body.to - body.from) / 3600).toBe(24)
})

test('200: sums with percentiles, of this organization alone', async () => {
  const { organizationId } = await createOrganization('Other', api.house)
  await write([
    { durationMs: 100, firstTokenMs: 20 },
    { durationMs: 1000, at: '2026-06-01T11:59:59Z' },
    { durationMs: 1000, at: '2026-06-01T10:00:00Z' },
    { organizationId },
  ])
  const { body } = await read()
  expect(body.data.map(({ start, calls }) => [start, calls])).toEqual([
    [Date.parse('2026-06-01T10:00:00Z') / 1000, 1],
    [Date.parse('2026-06-01T11:00:00Z') / 1000, 2],
  ])
  expect(body.total).toMatchObject([
    {
      group: null,
      is_other: false,
      calls: 3,
      input_tokens: 300,
      cached_input_tokens: 30,
      output_tokens: 15,
      credits: 21,
      first_token: { count: 1 },
      latency: { count: 3 },
    },
  ])
  expect(Math.abs((body.total[0]?.latency?.p50_ms ?? 0) - 1000)).toBeLessThan(100)
  const minutes = await read({ span: 'minute', from: '2026-06-01T11:30:00Z' })
  expect(minutes.body.data.map(({ calls }) => calls)).toEqual([1, 1])
  expect((await read({ span: 'day' })).body.data.map(({ calls }) => calls)).toEqual([3])
})

test('200: by group, and with filters', async () => {
  await write([
    { model: 'large' },
    { model: 'large', outcome: 'failed', status: 502 },
    { model: null, outcome: 'refused', refusal: { status: 404, code: 'model_not_found' } },
    { projectId: null, outcome: 'unknown' },
    { projectId: 'proj_2', outcome: 'blocked' },
  ])
  const by = async (query: Record<string, string>) => shortOf((await read(query)).body.total)
  expect(await by({ group_by: 'model' })).toEqual([
    ['large', 2],
    ['m', 2],
    [null, 1],
  ])
  expect(await by({ group_by: 'project' })).toEqual([
    ['proj_1', 3],
    [null, 1],
    ['proj_2', 1],
  ])
  expect(await by({ group_by: 'status' })).toEqual([
    ['2xx', 2],
    ['4xx', 1],
    ['5xx', 1],
    ['none', 1],
  ])
  expect(await by({ group_by: 'outcome', project_id: 'proj_1', status: '5xx' })).toEqual([
    ['failed', 1],
  ])
  expect(await by({ model: 'large', outcome: 'completed' })).toEqual([[null, 1]])
})

test('200: by key and day; further groups are others', async () => {
  const calls = Array.from({ length: 12 }, (_, at) =>
    Array.from({ length: 12 - at }, () => ({ actor: `key_${at}`, projectId: `proj_${at}` })),
  ).flat()
  await write(calls)
  const { body } = await read({ span: 'day', group_by: 'key' })
  expect(shortOf(body.total).slice(0, 2)).toEqual([
    ['key_0', 12],
    ['key_1', 11],
  ])
  // The four smallest together: 4 + 3 + 2 + 1.
  expect(shortOf(body.total)).toContainEqual(['others', 10])
  expect(body.total).toHaveLength(9)
  expect(body.total[0]?.latency).toBeNull()
  const one = await read({ span: 'day', key_id: 'key_3' })
  expect(shortOf(one.body.total)).toEqual([[null, 9]])
  expect(shortOf((await read({ group_by: 'project' })).body.total)).toContainEqual(['others', 10])
})

test('an organization has a bounded number of rows, and no call is lost', async () => {
  const calls = Array.from({ length: rowsMax + 700 }, (_, at) => ({
    projectId: `proj_${at}`,
    actor: `key_${at}`,
  }))
  await write(calls)
  await write(calls.slice(-50))
  const { rows } = await sql`
    select (select count(*)::integer from traffic_sum where span = 'hour') as sums,
      (select count(*)::integer from traffic_key_day) as keys`.execute(api.db)
  expect(rows).toEqual([{ sums: rowsMax + 1, keys: rowsMax + 1 }])
  expect((await read()).body.total[0]?.calls).toBe(rowsMax + 750)
  const byKey = await read({ span: 'day', group_by: 'key' })
  expect(byKey.body.total.reduce((sum, each) => sum + each.calls, 0)).toBe(rowsMax + 750)
})

test('200: credits are null without credits.read; 403 without projects.read', async () => {
  await write([{}])
  const keyWith = async (permission: string) => {
    const body = { name: 'Narrow', permissions: [permission] }
    return (await api.send(createAdminApiKey, { body })).body.value
  }
  const narrow = await read({}, await keyWith('projects.read'))
  expect(narrow.body.total).toMatchObject([{ calls: 1, credits: null }])
  expect((await read({}, await keyWith('credits.read'))).status).toBe(403)
})

test.each([
  [{ span: 'minute', from: '2026-05-31T12:00:00Z' }, 'query.from'],
  [{ span: 'hour', from: '2026-04-01' }, 'query.from'],
  [{ span: 'hour', from: '2026-05-10', group_by: 'model' }, 'query.from'],
  [{ from: '2026-06-02' }, 'query.from'],
  [{ span: 'week' }, 'query.span'],
  [{ group_by: 'key' }, 'query.span'],
  [{ span: 'day', key_id: 'k', model: 'm' }, 'query.model'],
  [{ span: 'day', key_id: 'k', group_by: 'model' }, 'query.group_by'],
  [{ from: 'yesterday' }, 'query.from'],
])('422: %j', async (query, param) => {
  const { status, body } = await read(query as Record<string, string>)
  expect([status, body.error.param]).toEqual([422, param])
})

test('what is too old is removed, some at a time', async () => {
  await write([{ at: '2026-05-01T00:00:00Z' }, { at: '2026-05-02T00:00:00Z' }, {}])
  const before = new Date('2026-06-01T00:00:00Z')
  const sweep = () => transact(api.db, (tx) => sweepSums(tx, 'minute', before, 1))
  expect([await sweep(), await sweep(), await sweep()]).toEqual([1, 1, 0])
  expect(await transact(api.db, (tx) => sweepKeySums(tx, before, 10))).toBe(2)
  expect((await read()).body.total[0]?.calls).toBe(1)
})
