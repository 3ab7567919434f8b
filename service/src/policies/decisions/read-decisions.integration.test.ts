import { createAdminApiKey } from '@gatehouse/contract/api-key'
import {
  type PolicyDecisionCount,
  readPolicyDecisions,
} from '@gatehouse/contract/policy-evaluation'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { transact } from '#platform/transaction.ts'
import { createPolicyApi } from '#testing/policy-calls.ts'
import { createTestClock } from '#testing/test-gateway.ts'

import { sweepDecisions } from './decision-store.ts'

let house: Awaited<ReturnType<typeof createPolicyApi>>
let policyId: string
beforeEach(async () => {
  house = await createPolicyApi({ now: createTestClock().now }) // 2026-06-01, 12:00
  policyId = (await house.create()).id
})

type Count = {
  hour: string
  version?: number
  project?: string
  direction?: string
  mode?: 'monitoring' | 'enforcing'
  count: number
  policy?: string
  organization?: string
}

async function count(...counts: Count[]) {
  for (const each of counts) {
    const { hour, version = 1, project = 'proj_1', direction = 'request', mode } = each
    const decision = mode === 'enforcing' ? 'refuse' : 'allow'
    const organization = each.organization ?? house.api.organization.organizationId
    await sql`insert into policy_decision_hour values (${organization}, ${hour}, ${each.policy ?? policyId},
      ${version}, ${project}, ${direction}::policy_direction, ${decision}::policy_decision,
      ${mode ?? 'monitoring'}::policy_mode, ${each.count})`.execute(house.api.db)
  }
}

async function read(query: Record<string, string> = {}, id = policyId) {
  const answer = await house.api.send(readPolicyDecisions, { params: { policy_id: id }, query })
  const data = (answer.body.data ?? []) as unknown as PolicyDecisionCount[]
  return { ...answer, data, short: data.map((each) => [toText(each.start), each.count]) }
}

const toText = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 13)

test('200: without matches there is nothing', async () => {
  const { status, body } = await read()
  expect([status, body]).toEqual([
    200,
    { object: 'list', data: [], has_more: false, first_id: null, last_id: null },
  ])
})

test('200: counts by hour, or by day in UTC, of this policy alone', async () => {
  const { organizationId } = await createOrganization('Other', house.api.house)
  await count(
    { hour: '2026-05-31T23:00:00Z', count: 1 },
    { hour: '2026-06-01T00:00:00Z', count: 2 },
    { hour: '2026-06-01T01:00:00Z', count: 4 },
    { hour: '2026-06-01T01:00:00Z', count: 8, policy: 'pol_other' },
    { hour: '2026-06-01T01:00:00Z', count: 16, organization: organizationId },
  )
  expect((await read({ by: 'hour' })).short).toEqual([
    ['2026-05-31T23', 1],
    ['2026-06-01T00', 2],
    ['2026-06-01T01', 4],
  ])
  const { data, short } = await read()
  expect(short).toEqual([
    ['2026-05-31T00', 1],
    ['2026-06-01T00', 6],
  ])
  expect(data[0]).toEqual({
    id: expect.stringMatching(/^decisions_[\w-]+$/) as string,
    object: 'organization.policy.decisions',
    start: Date.parse('2026-05-31') / 1000,
    version: 1,
    project_id: 'proj_1',
    direction: 'request',
    decision: 'allow',
    mode: 'monitoring',
    count: 1,
  })
})

test('200: versions, projects, directions and modes are apart; no project is null', async () => {
  const hour = '2026-06-01T10:00:00Z'
  await count(
    { hour, count: 1 },
    { hour, count: 2, version: 2 },
    { hour, count: 3, project: '' },
    { hour, count: 4, direction: 'response' },
    { hour, count: 5, mode: 'enforcing' },
  )
  const { data } = await read()
  expect(
    data.map(({ project_id, version, direction, decision, mode, count }) =>
      [version, project_id, direction, decision, mode, count].join(' '),
    ),
  ).toEqual([
    '1  request allow monitoring 3',
    '1 proj_1 request allow monitoring 1',
    '1 proj_1 request refuse enforcing 5',
    '1 proj_1 response allow monitoring 4',
    '2 proj_1 request allow monitoring 2',
  ])
  expect(data[0]!.project_id).toBeNull()
  const one = await read({ project_id: 'proj_1' })
  expect(one.data.map((each) => each.count)).toEqual([1, 5, 4, 2])
})

test('200: pages in both orders have every item once', async () => {
  const counts = Array.from({ length: 7 }, (_, index) => ({
    hour: `2026-06-01T0${index >> 1}:00:00Z`,
    count: index + 1,
    mode: index % 2 === 0 ? ('monitoring' as const) : ('enforcing' as const),
  }))
  await count(...counts)
  for (const by of ['hour', 'day']) {
    for (const order of ['asc', 'desc']) {
      const all = (await read({ by, order })).data
      const seen: PolicyDecisionCount[] = []
      for (let after = ''; ;) {
        const page = await read({ by, order, limit: '2', ...(after && { after }) })
        seen.push(...page.data)
        if (!page.body.has_more) break
        after = page.body.last_id!
      }
      expect(seen).toEqual(all)
      expect(all.length).toBe(by === 'hour' ? 7 : 2)
    }
  }
})

test('200: both days are included, and 30 days are the default', async () => {
  await count(
    { hour: '2026-05-02T23:00:00Z', count: 1 },
    { hour: '2026-05-03T00:00:00Z', count: 2 },
    { hour: '2026-06-01T23:00:00Z', count: 3 },
    { hour: '2026-06-02T00:00:00Z', count: 4 },
  )
  expect((await read({ by: 'hour' })).data.map((each) => each.count)).toEqual([2, 3])
  const range = { from: '2026-05-02', to: '2026-05-03' }
  expect((await read(range)).data.map((each) => each.count)).toEqual([1, 2])
})

test.each([
  [{ from: '2026-05-01', to: '2026-06-01', by: 'hour' }, 'query.from'],
  [{ from: '2025-05-31', to: '2026-06-01' }, 'query.from'],
  [{ from: '2026-06-02' }, 'query.from'],
  [{ by: 'week' }, 'query.by'],
  [{ from: 'yesterday' }, 'query.from'],
])('422: %j', async (query, param) => {
  const { status, body } = await read(query)
  expect([status, body.error.param]).toEqual([422, param])
})

test('31 days by hour and 366 by day are accepted', async () => {
  const hours = { from: '2026-05-02', to: '2026-06-01', by: 'hour' }
  const days = { from: '2025-06-01', to: '2026-06-01', by: 'day' }
  expect([(await read(hours)).status, (await read(days)).status]).toEqual([200, 200])
})

test('400: a cursor of another list', async () => {
  await count({ hour: '2026-06-01T10:00:00Z', count: 1 })
  const [item] = (await read({ by: 'hour' })).data
  const forged = `decisions_${Buffer.from('["day",1,1,"","x","allow","enforcing"]').toString('base64url')}`
  for (const after of [item!.id, `${item!.id}A`, forged, 'decisions_', 'x']) {
    const { status, body } = await read({ by: 'day', after })
    expect([status, body.error.code]).toEqual([400, 'invalid_cursor'])
  }
})

test('403 without policies.read, 404 for an unknown policy', async () => {
  const narrow = { name: 'Narrow', permissions: ['policies.write'] }
  const { value } = (await house.api.send(createAdminApiKey, { body: narrow })).body
  const params = { policy_id: policyId }
  const refused = await house.api.send(readPolicyDecisions, { params, credential: value })
  expect(refused.status).toBe(403)
  expect((await read({}, 'pol_none')).body.error.code).toBe('policy_not_found')
})

test('what is too old for charts is removed, some at a time', async () => {
  const hours = ['2025-01-01T00:00:00Z', '2025-01-02T00:00:00Z', '2025-06-01T00:00:00Z']
  await count(...hours.map((hour) => ({ hour, count: 1 })))
  const sweep = () =>
    transact(house.api.db, (tx) => sweepDecisions(tx, new Date('2025-06-01T00:00:00Z'), 1))
  expect([await sweep(), await sweep(), await sweep()]).toEqual([1, 1, 0])
  const { rows } = await sql`select hour from policy_decision_hour`.execute(house.api.db)
  expect(rows).toEqual([{ hour: new Date('2025-06-01T00:00:00Z') }])
})
