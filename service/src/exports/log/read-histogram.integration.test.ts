import {
  type AuditEvent,
  listAuditEvents,
  readAuditHistogram,
} from '@gatehouse/contract/exports/audit-event'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { insertEvents } from '#audit/event-store.ts'
import { buildCallEvent, buildRevisionEvent, type CallOutcome, operator } from '#audit/event.ts'
import { createTestApi } from '#testing/test-api.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi()
})

async function writeCall(time: string, outcome: CallOutcome = 'completed', actor = 'key_1') {
  const { organizationId } = api.organization
  const call = { requestId: 'req_1', projectId: 'proj_1', actor, actorType: 'project_key' } as const
  const report = { ...call, organizationId, model: 'm', target: 'messages', outcome, usage: {} }
  await insertEvents(api.db, [buildCallEvent({ ...report, policies: null }, new Date(time))])
}

async function writeChange(time: string, organizationId = api.organization.organizationId) {
  const after = { id: 'x', object: 'thing', name: 'New' }
  const revision = { organizationId, by: operator, action: 'created', before: null, after } as const
  await insertEvents(api.db, [buildRevisionEvent(revision, new Date(time))])
}

async function read(query: Record<string, string>) {
  const { status, body } = await api.send(readAuditHistogram, { query })
  const data = body.data as unknown as { start: string; count: number }[]
  return { status, body, counts: data?.map(({ count }) => count), data }
}

const hours = { from: '2026-03-01T10:00:00Z', to: '2026-03-01T13:00:00Z', by: 'hour' }

test('200: how many events each part of the range has, with the filters of the list', async () => {
  const other = await createOrganization('Other', api.house)
  await writeChange('2026-03-01T10:30:00Z', other.organizationId)
  await writeCall('2026-03-01T09:59:59.999Z')
  await writeCall('2026-03-01T10:00:00Z')
  await writeCall('2026-03-01T10:59:59.999Z', 'failed')
  await writeChange('2026-03-01T12:00:00Z')
  await writeCall('2026-03-01T12:59:59.999Z', 'completed', 'key_2')
  await writeCall('2026-03-01T13:00:00Z')
  expect((await read(hours)).body).toEqual({
    object: 'organization.audit_histogram',
    by: 'hour',
    data: [
      { start: '2026-03-01T10:00:00.000Z', count: 2 },
      { start: '2026-03-01T11:00:00.000Z', count: 0 },
      { start: '2026-03-01T12:00:00.000Z', count: 2 },
    ],
  })
  const cases: [Record<string, string>, number[]][] = [
    [{ type: 'revision' }, [0, 0, 1]],
    [{ outcome: 'failed' }, [1, 0, 0]],
    [{ outcome: 'completed' }, [1, 0, 1]],
    [{ actor: 'operator' }, [0, 0, 1]],
    [{ key_id: 'key_1' }, [2, 0, 0]],
    [{ object_id: 'x', action: 'created' }, [0, 0, 1]],
    [{ request_id: 'req_1' }, [2, 0, 1]],
    [{ project_id: 'proj_1' }, [2, 0, 1]],
    [{ from: '2026-03-01T10:30:00Z' }, [1, 0, 2]],
    [{ to: '2026-03-01T12:30:00Z' }, [2, 0, 1]],
    [{ from: '2026-02-28', to: '2026-03-03', by: 'day' }, [0, 6, 0]],
    [{ from: '2026-03-01T12:59:00Z', to: '2026-03-01T13:01:00Z', by: 'minute' }, [1, 1]],
    [{ to: '2026-03-01T10:00:00Z' }, []],
  ]
  for (const [query, expected] of cases) {
    expect([query, (await read({ ...hours, ...query })).counts]).toEqual([query, expected])
  }
})

test('the counts are those of the list', async () => {
  const startMs = Date.parse('2026-03-01T00:00:00Z')
  for (let number = 0; number < 60; number++) {
    const at = new Date(startMs + ((number * 79_190_003) % 259_200_000)).toISOString()
    await writeCall(at, number % 3 === 0 ? 'failed' : 'completed')
    if (number % 4 === 0) await writeChange(at)
  }
  const range = { from: '2026-03-01T05:17:00Z', to: '2026-03-03T07:00:01Z' }
  for (const filter of [{}, { outcome: 'failed' }, { type: 'revision' }]) {
    const { body } = await api.send(listAuditEvents, {
      query: { ...range, ...filter, limit: '100' },
    })
    const events = body.data as unknown as AuditEvent[]
    const { data } = await read({ ...range, ...filter, by: 'hour' })
    for (const { start, count } of data) {
      const listed = events.filter((event) => event.created_at.slice(0, 13) === start.slice(0, 13))
      expect([start, count]).toEqual([start, listed.length])
    }
    expect(data).toHaveLength(51)
  }
})

test.each([
  [{ from: '2026-03-02', to: '2026-03-01' }, 'query.from'],
  [{ from: '2026-03-01', to: '2026-03-02', by: 'minute' }, 'query.from'],
  [{ from: '0000-01-01T00:00:00+14:00', to: '9999-12-31T23:59:59-14:00', by: 'day' }, 'query.from'],
  [{ from: '2026-03-01', to: '2026-03-02', by: 'week' }, 'query.by'],
  [{ from: '2026-03-01' }, 'query.to'],
])('422: %j', async (query, param) => {
  const { status, body } = await read(query as never)
  expect([status, body.error.param]).toEqual([422, param])
})

test('200: years that an offset leads out of', async () => {
  const last = '9999-12-31T23:59:59.999-14:00'
  expect((await read({ from: '9999-12-31T23:00:00Z', to: last, by: 'hour' })).counts).toEqual([0])
  expect((await read({ from: last, to: last, by: 'minute' })).counts).toEqual([])
})
