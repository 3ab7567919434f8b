import { createProjectApiKey, updateProjectApiKey } from '@gatehouse/contract/api-key'
import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { listGatewayQuotas } from '@gatehouse/contract/policy-gateway/quotas'
import { updateProject } from '@gatehouse/contract/project'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createTestApi } from '#testing/test-api.ts'

const now = new Date('2026-11-16T12:00:00Z')
let api: Awaited<ReturnType<typeof createTestApi>>
let organizationId: string
let project_id: string
beforeEach(async () => {
  api = await createTestApi({ now: () => now })
  organizationId = api.organization.organizationId
  project_id = api.organization.projectId
})

const save = (org_controls: object) =>
  api.send(saveGatewayConfig, { body: { config: { org_controls } } })
const list = async (query: Record<string, string> = {}) => {
  const { status, body } = await api.send(listGatewayQuotas, { query })
  expect(status).toBe(200)
  return body
}
const idsOf = async (query?: Record<string, string>) => (await list(query)).data.map(({ id }) => id)

const monthly = {
  object: 'policy_gateway.quota',
  window: 'monthly',
  window_start: '2026-11-01T00:00:00Z',
  window_end: '2026-12-01T00:00:00Z',
}
const user_quota = { requests: 10, tokens: 0, window: 'weekly' }

/** Three users, a project and a key, all with calls. */
async function use() {
  const { id: key } = (
    await api.send(createProjectApiKey, { params: { project_id }, body: { name: 'x' } })
  ).body
  const rows = [
    ['user', 'ann', '2026-11-15', 1],
    ['user', 'ann', '2026-11-16', 2],
    ['user', 'bob: a', '2026-11-16', 3],
    ['user', 'carol', '2026-11-15', 4],
    ['project', project_id, '2026-11-01', 5],
    ['project', project_id, '2026-10-31', 6],
    ['key', key, '2026-11-02', 7],
    ['organization', '', '2026-11-02', 8],
  ] as const
  for (const [scope, subject, day, amount] of rows) {
    await sql`insert into quota_usage values
      (${organizationId}, ${scope}, ${subject}, ${day}, ${amount}, ${amount * 10}, ${amount * 100})`.execute(
      api.db,
    )
  }
  return key
}

test('without quotas and budgets the list is empty', async () => {
  await use()
  expect(await list()).toEqual({
    object: 'list',
    data: [],
    has_more: false,
    first_id: null,
    last_id: null,
  })
})

test('budgets and quotas are listed with what is used of them in the current window', async () => {
  const key = await use()
  await save({
    user_quotas: true,
    user_quota,
    project_quota: { requests: 0, tokens: 9000, window: 'monthly' },
    monthly_budget: { credits: 5000 },
  })
  const soft = { credits: 0, hard_stop: false }
  await api.send(updateProject, { params: { project_id }, body: { monthly_budget: soft } })
  const params = { project_id, key_id: key }
  await api.send(updateProjectApiKey, { params, body: { monthly_budget: { credits: 800 } } })
  const week = {
    ...monthly,
    window: 'weekly',
    window_start: '2026-11-16T00:00:00Z',
    window_end: '2026-11-23T00:00:00Z',
  }
  const budget = (scope: string, subject: string, used: number, limit: number) => ({
    ...monthly,
    id: `budget:${scope}:${subject}`,
    kind: 'budget',
    scope,
    subject,
    credits: { used, limit },
    hard_stop: scope !== 'project',
  })
  const user = (subject: string, used: number) => ({
    ...week,
    id: `quota:user:${subject}`,
    kind: 'quota',
    scope: 'user',
    subject,
    requests: { used, limit: 10 },
    tokens: { used: used * 10, limit: null },
  })
  expect((await list()).data).toEqual([
    budget('organization', organizationId, 800, 5000),
    budget('project', project_id, 500, 0),
    budget('key', key, 700, 800),
    {
      ...monthly,
      id: `quota:project:${project_id}`,
      kind: 'quota',
      scope: 'project',
      subject: project_id,
      requests: { used: 5, limit: null },
      tokens: { used: 50, limit: 9000 },
    },
    user('ann', 2),
    user('bob: a', 3),
  ])
})

test('pages of every size have each item once, also of one scope', async () => {
  const key = await use()
  await save({
    user_quotas: true,
    user_quota: { ...user_quota, window: 'monthly' },
    monthly_budget: { credits: 5000 },
  })
  const params = { project_id, key_id: key }
  await api.send(updateProjectApiKey, { params, body: { monthly_budget: { credits: 800 } } })
  const users = ['quota:user:ann', 'quota:user:bob: a', 'quota:user:carol']
  const all = [`budget:organization:${organizationId}`, `budget:key:${key}`, ...users]
  for (const limit of ['1', '2', '3', '5']) {
    const found: string[] = []
    for (let after: Record<string, string> = {}, hasMore = true; hasMore;) {
      const page = await list({ limit, ...after })
      found.push(...page.data.map(({ id }) => id))
      hasMore = page.has_more
      after = { after: page.last_id ?? '' }
    }
    expect(found, limit).toEqual(all)
  }
  expect(await idsOf({ scope: 'user', limit: '2' })).toEqual(users.slice(0, 2))
  expect(await idsOf({ scope: 'user', after: users[1]! })).toEqual(users.slice(2))
  const wrong = await api.send(listGatewayQuotas, { query: { after: 'ann' } })
  expect([wrong.status, wrong.body.error.code]).toEqual([400, 'invalid_cursor'])
})

test('another organization sees nothing of it, and project keys may not read it', async () => {
  await use()
  await save({ user_quotas: true, user_quota })
  const other = await createOrganization('Other', api.house)
  const config = { org_controls: { user_quotas: true, user_quota } }
  const credential = other.adminKey
  await api.send(saveGatewayConfig, { body: { config }, credential })
  expect((await api.send(listGatewayQuotas, { credential })).body.data).toEqual([])
  const made = await api.send(createProjectApiKey, { params: { project_id }, body: { name: 'y' } })
  const refused = await api.send(listGatewayQuotas, { credential: made.body.value })
  expect(refused.status).toBe(401)
})
