import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { type AuditEvent, listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { insertEvents } from '#audit/event-store.ts'
import { buildCallEvent, buildRevisionEvent, operator } from '#audit/event.ts'
import { nothingFound } from '#audit/policy-report.ts'
import { createTestApi } from '#testing/test-api.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi()
})

const at = (time: string) => new Date(`2026-03-0${time}`)

/** Of the organization's first days, so before what the set-up of a test has written. */
type Call = { project?: string; policy?: string; key?: string; request?: string }
async function writeCall(time: string, members: Call) {
  const { project = null, policy, key = 'key_1', request = 'req_1' } = members
  const event = buildCallEvent(
    {
      organizationId: api.organization.organizationId,
      requestId: request,
      projectId: project,
      actor: key,
      actorType: 'project_key',
      model: 'm',
      target: 'messages',
      outcome: policy === undefined ? 'completed' : 'blocked',
      usage: { credits: 7 },
      policies: nothingFound,
    },
    at(time),
  )
  const decided = policy !== undefined && { policy_id: policy, decision: 'refuse' }
  const header = { ...event.header, ...decided }
  await insertEvents(api.db, [{ ...event, header }])
  return event.id
}

async function writeChange(time: string, organizationId = api.organization.organizationId) {
  const after = { id: 'x', object: 'thing', name: 'New' }
  const revision = { organizationId, by: operator, action: 'created', before: null, after } as const
  const event = buildRevisionEvent(revision, at(time))
  await insertEvents(api.db, [event])
  return event.id
}

async function list(query: Record<string, string> = {}) {
  const { status, body } = await api.send(listAuditEvents, {
    query: { to: '2026-03-09', ...query },
  })
  const page = body as unknown as { data: AuditEvent[]; has_more: boolean; last_id: string }
  return { status, body, ...page, ids: page.data?.map(({ id }) => id) }
}

test('an event has the members of its header, its payload and its hash', async () => {
  const call = await writeCall('1T10:00Z', { project: 'proj_1', policy: 'pol_1' })
  const change = await writeChange('1T11:00Z')
  const { status, data, body } = await list()
  expect([status, body.has_more, body.first_id, body.last_id]).toEqual([200, false, change, call])
  const every = {
    source: 'policy_gateway',
    org_id: api.organization.organizationId,
    payload_hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
  }
  expect(data).toEqual([
    {
      ...every,
      id: change,
      event_id: change,
      event_type: 'revision',
      created_at: '2026-03-01T11:00:00.000Z',
      action: 'created',
      object_id: 'x',
      actor: 'operator',
      actor_type: 'operator',
      request_id: null,
      payload: { before: null, after: { id: 'x', object: 'thing', name: 'New' } },
      object: 'thing',
    },
    expect.objectContaining({
      ...every,
      id: call,
      event_type: 'enforcement',
      phase: 'call',
      project_id: 'proj_1',
      policy_id: 'pol_1',
      decision: 'refuse',
      payload: { usage: { credits: 7 } },
    }),
  ])
})

test('filters, alone and together', async () => {
  const first = await writeCall('1T10:00Z', { project: 'proj_1', request: 'req_2' })
  const second = await writeCall('2T10:00Z', { project: 'proj_1', policy: 'pol_1', key: 'key_2' })
  const third = await writeCall('3T10:00Z', { project: 'proj_2', policy: 'pol_2' })
  const change = await writeChange('4T10:00Z')
  const cases: [Record<string, string>, string[]][] = [
    [{}, [change, third, second, first]],
    [{ order: 'asc' }, [first, second, third, change]],
    [{ type: 'revision' }, [change]],
    [{ type: 'enforcement' }, [third, second, first]],
    [{ type: 'simulation' }, []],
    [{ project_id: 'proj_1' }, [second, first]],
    [{ policy_id: 'pol_1' }, [second]],
    [{ decision: 'refuse' }, [third, second]],
    [{ decision: 'allow' }, [first]],
    [{ decision: 'refuse', project_id: 'proj_2' }, [third]],
    [{ policy_id: 'pol_1', project_id: 'proj_2' }, []],
    [{ actor: 'operator' }, [change]],
    [{ actor: 'key_1' }, [third, first]],
    [{ actor: 'key' }, []],
    [{ key_id: 'key_2' }, [second]],
    [{ key_id: 'operator' }, []],
    [{ action: 'created' }, [change]],
    [{ action: 'deleted' }, []],
    [{ object_id: 'x' }, [change]],
    [{ object_id: 'proj_1' }, []],
    [{ request_id: 'req_1' }, [third, second]],
    [{ outcome: 'completed' }, [first]],
    [{ outcome: 'blocked' }, [third, second]],
    [{ outcome: 'blocked', key_id: 'key_1' }, [third]],
    [{ actor: 'operator', action: 'created', object_id: 'x', type: 'revision' }, [change]],
    [{ actor: 'operator', outcome: 'completed' }, []],
    [{ from: '2026-03-02T10:00:00Z' }, [change, third, second]],
    [{ from: '2026-03-02T10:00:00.001Z' }, [change, third]],
    [{ to: '2026-03-03T10:00:00Z' }, [second, first]],
    [{ to: '2026-03-03T12:00:00.001+02:00' }, [third, second, first]],
    [{ from: '2026-03-02', to: '2026-03-03' }, [second]],
    [{ from: '2026-03-02', to: '2026-03-02' }, []],
  ]
  for (const [query, expected] of cases) {
    expect([query, (await list(query)).ids]).toEqual([query, expected])
  }
})

test('pages in both orders, with a filter', async () => {
  const ids: string[] = []
  for (let day = 1; day <= 7; day++) {
    ids.push(await writeCall(`${day}T10:00Z`, { policy: 'pol_1' }))
    await writeChange(`${day}T11:00Z`)
  }
  for (const order of ['asc', 'desc'] as const) {
    const seen: string[] = []
    for (let after = ''; ;) {
      const query = { order, limit: '3', decision: 'refuse', ...(after && { after }) }
      const page = await list(query)
      seen.push(...page.ids)
      if (!page.has_more) break
      after = page.last_id
    }
    expect(seen).toEqual(order === 'asc' ? ids : ids.toReversed())
  }
})

test('the same words of another organization are not found', async () => {
  const other = await createOrganization('Other', api.house)
  await writeChange('1T10:00Z', other.organizationId)
  for (const query of [{ actor: 'operator' }, { object_id: 'x' }, { action: 'created' }]) {
    expect((await list(query)).ids).toEqual([])
  }
})

test('200: years that an offset leads out of', async () => {
  const change = await writeChange('1T10:00Z')
  const last = '9999-12-31T23:59:59.999-14:00'
  const first = '0000-01-01T00:00:00+14:00'
  const cases: [Record<string, string>, string[]][] = [
    [{ from: first, to: '9999-12-31' }, [change]],
    [{ from: first, to: last, object_id: 'x' }, [change]],
    [{ from: '0001-01-01T00:00:00Z', to: '9999-12-31T23:59:59.999Z', object_id: 'x' }, [change]],
    [{ from: last, to: last }, []],
    [{ from: first, to: first }, []],
    [{ from: '1969-12-31T23:59:59Z', to: '1970-01-01T00:00:00Z' }, []],
    [{ from: first, to: last, after: change, object_id: 'x' }, []],
  ]
  for (const [query, ids] of cases) {
    const answer = await list(query)
    expect([query, answer.status]).toEqual([query, 200])
    if (query['to'] === '9999-12-31') expect(answer.ids).toContain(change)
    else expect([query, answer.ids]).toEqual([query, ids])
  }
})

test('an event whose payload was erased still has its hash', async () => {
  await writeChange('1T10:00Z')
  const before = (await list()).data[0]!
  await sql`update event set payload = null, salt = null where id = ${before.id}`.execute(api.db)
  expect((await list()).data).toEqual([{ ...before, payload: null }])
})

test('400: a cursor that is no event of the organization', async () => {
  const other = await createOrganization('Other', api.house)
  const foreign = await writeChange('1T10:00Z', other.organizationId)
  const own = await writeChange('1T10:00Z')
  expect((await list({ after: own })).status).toBe(200)
  const unknown = `${own.slice(0, -1)}${own.endsWith('0') ? '1' : '0'}`
  for (const after of [foreign, unknown, 'pol_1', 'x', own.toUpperCase(), 'f'.repeat(32)]) {
    const { status, body } = await list({ after })
    expect([after, status, body.error?.code]).toEqual([after, 400, 'invalid_cursor'])
  }
})

test.each([
  [{ type: 'audit' }, 'query.type'],
  [{ action: 'create' }, 'query.action'],
  [{ outcome: 'ok' }, 'query.outcome'],
  [{ actor: '' }, 'query.actor'],
  [{ request_id: 'x'.repeat(201) }, 'query.request_id'],
  [{ decision: 'deny' }, 'query.decision'],
  [{ from: 'yesterday' }, 'query.from'],
  [{ to: '2026-02-30' }, 'query.to'],
  [{ from: '2026-03-02', to: '2026-03-01' }, 'query.from'],
  [{ limit: '101' }, 'query.limit'],
])('422: %j', async (query, param) => {
  const { status, body } = await list(query)
  expect([status, body.error.param]).toEqual([422, param])
})

test('422: a moment that cannot be read is told how to be written', async () => {
  const { body } = await list({ from: 'yesterday' })
  expect(body.error.message).toBe(
    "'query.from' must be a day as in 2026-01-31, or a time as in 2026-01-31T12:00:00Z.",
  )
})

test('403 without audit.read', async () => {
  const body = { name: 'Reader', permissions: ['policies.read'] }
  const created = await api.send(createAdminApiKey, { body })
  const { value: credential } = created.body as unknown as { value: string }
  const answer = await api.send(listAuditEvents, { credential })
  expect([answer.status, answer.body.error.code]).toEqual([403, 'permission_denied'])
})
