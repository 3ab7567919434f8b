import {
  createAdminApiKey,
  createProjectApiKey,
  listProjectApiKeys,
  updateProjectApiKey,
} from '@gatehouse/contract/api-key'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import {
  deleteProjectMember,
  listProjectMembers,
  setProjectMember,
} from '@gatehouse/contract/members/project-member'
import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import {
  archiveProject,
  createProject,
  retrieveProject,
  updateProject,
} from '@gatehouse/contract/project'
import type { ProjectRole, Role } from '@gatehouse/contract/role'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
let projectId: string
beforeEach(async () => {
  api = await createTestApi()
  projectId = api.organization.projectId
})

type Sent = NonNullable<Parameters<typeof api.send>[1]>

async function signIn(role: Role, projectRoles: Record<string, ProjectRole> = {}) {
  const { organizationId } = api.organization
  const { memberId, token } = await createMemberSession(api.house, {
    organizationId,
    role,
    projectRoles,
  })
  const send = (endpoint: Endpoint, sent: Sent = {}) =>
    api.send(endpoint, { credential: token, ...sent })
  return { memberId, send }
}

const at = (project_id = projectId) => ({ params: { project_id } })
const of = (member_id: string, project_id = projectId) => ({ params: { project_id, member_id } })
const asAdmin = { body: { role: 'project_admin' } }
const asMember = { body: { role: 'project_member' } }
const another = async () => (await api.send(createProject, { body: { name: 'Another' } })).body.id
const outcome = ({ status, body }: Awaited<ReturnType<typeof api.send>>) =>
  status < 400 ? status : [status, body.error.code]

test('200: a member joins a project, gets another role, and leaves it', async () => {
  const { memberId } = await signIn('developer')
  const joined = await api.send(setProjectMember, { ...of(memberId), ...asMember })
  expect(joined.body).toEqual({
    id: memberId,
    object: 'organization.project.member',
    project_id: projectId,
    email: `${memberId}@example.com`,
    name: 'Member',
    role: 'project_member',
    created_at: expect.any(Number) as number,
  })
  const again = await api.send(setProjectMember, { ...of(memberId), ...asMember })
  expect(again.body).toEqual(joined.body)
  const promoted = await api.send(setProjectMember, { ...of(memberId), ...asAdmin })
  expect(promoted.body).toEqual({ ...joined.body, role: 'project_admin' })
  expect((await api.send(listProjectMembers, at())).body.data).toEqual([promoted.body])
  const left = await api.send(deleteProjectMember, of(memberId))
  expect(left.body).toEqual({
    id: memberId,
    object: 'organization.project.member.deleted',
    deleted: true,
  })
  expect(outcome(await api.send(deleteProjectMember, of(memberId)))).toEqual([
    404,
    'member_not_found',
  ])
  expect((await api.send(listProjectMembers, at())).body.data).toEqual([])
})

test('every change is one event and one change for the processes', async () => {
  const { memberId } = await signIn('developer')
  for (const sent of [asMember, asMember, asAdmin]) {
    await api.send(setProjectMember, { ...of(memberId), ...sent })
  }
  await api.send(deleteProjectMember, of(memberId))
  const { data } = (await api.send(listAuditEvents, { query: { order: 'asc' } })).body
  const found = data.map((event) => JSON.stringify(event)).filter((text) => text.includes(memberId))
  const ofMembership = found.filter((text) => text.includes('organization.project.member'))
  expect(ofMembership.map((text) => /"action":"(\w+)"/.exec(text)?.[1])).toEqual([
    'created',
    'updated',
    'deleted',
  ])
  const changes = await api.db.selectFrom('config_change').select(['kind', 'object_id']).execute()
  expect(changes).toEqual(
    Array.from({ length: 3 }, () => ({ kind: 'member', object_id: memberId })),
  )
})

test('404, 409, 422: what can be no membership', async () => {
  const { memberId } = await signIn('developer')
  const put = async (sent: Sent) => outcome(await api.send(setProjectMember, sent))
  expect(await put({ ...of('mem_none'), ...asMember })).toEqual([404, 'member_not_found'])
  expect(await put({ ...of(memberId, 'proj_none'), ...asMember })).toEqual([
    404,
    'project_not_found',
  ])
  const foreign = await createOrganization('Foreign Ltd', api.house)
  const { organizationId } = foreign
  const stranger = await createMemberSession(api.house, { organizationId, role: 'owner' })
  expect(await put({ ...of(stranger.memberId), ...asMember })).toEqual([404, 'member_not_found'])
  const role = { body: { role: 'owner' } }
  expect(await put({ ...of(memberId), ...role })).toEqual([422, 'invalid_parameter'])
  const old = await another()
  await api.send(setProjectMember, { ...of(memberId, old), ...asMember })
  await api.send(archiveProject, at(old))
  expect(await put({ ...of(memberId, old), ...asAdmin })).toEqual([409, 'project_archived'])
  // What is over can still be tidied up.
  expect(outcome(await api.send(deleteProjectMember, of(memberId, old)))).toBe(200)
})

test('pages of members, in both orders', async () => {
  const ids: string[] = []
  for (let index = 0; index < 7; index++) {
    ids.push((await signIn('viewer', { [projectId]: 'project_member' })).memberId)
  }
  for (const order of ['asc', 'desc']) {
    const seen: string[] = []
    for (let after: string | null = null; ;) {
      const query = { limit: '3', order, ...(after && { after }) }
      const { body } = await api.send(listProjectMembers, { ...at(), query })
      seen.push(...body.data.map(({ id }) => id))
      if (!body.has_more) break
      after = body.last_id
    }
    expect(seen).toEqual(order === 'asc' ? ids : ids.toReversed())
  }
  const elsewhere = { ...at(await another()), query: { after: ids[0]! } }
  expect(outcome(await api.send(listProjectMembers, elsewhere))).toEqual([400, 'invalid_cursor'])
})

/** What the callers of this table do in the project: the status for each. */
const requests: readonly (readonly [string, Endpoint, () => Sent])[] = [
  ['read', retrieveProject, at],
  ['list members', listProjectMembers, at],
  ['take in', setProjectMember, () => ({ ...of(newcomer), ...asMember })],
  ['remove', deleteProjectMember, () => of(newcomer)],
  ['set a budget', updateProject, () => ({ ...at(), body: { monthly_budget: { credits: 5 } } })],
  ['rename', updateProject, () => ({ ...at(), body: { name: 'Mine' } })],
  ['list keys', listProjectApiKeys, at],
  ['make a key', createProjectApiKey, () => ({ ...at(), body: { name: 'K' } })],
  ['archive', archiveProject, at],
]
let newcomer: string

const expected = {
  'developer, in no project': [200, 403, 403, 403, 403, 403, 200, 403, 403],
  'developer, admin of another project': [200, 403, 403, 403, 403, 403, 200, 403, 403],
  'developer, member of the project': [200, 200, 403, 403, 403, 403, 200, 201, 403],
  'developer, admin of the project': [200, 200, 200, 200, 200, 403, 200, 201, 403],
  'admin, in no project': [200, 200, 200, 200, 200, 200, 200, 201, 200],
}

test('each role in a project allows what the specification says, and nothing in another one', async () => {
  projectId = await another()
  const elsewhere = await another()
  newcomer = (await signIn('viewer')).memberId
  const callers = {
    'developer, in no project': await signIn('developer'),
    'developer, admin of another project': await signIn('developer', {
      [elsewhere]: 'project_admin',
    }),
    'developer, member of the project': await signIn('developer', {
      [projectId]: 'project_member',
    }),
    'developer, admin of the project': await signIn('developer', { [projectId]: 'project_admin' }),
    'admin, in no project': await signIn('admin'),
  }
  const found: Record<string, number[]> = {}
  for (const [name, caller] of Object.entries(callers)) {
    found[name] = []
    for (const [, endpoint, build] of requests) {
      found[name].push((await caller.send(endpoint, build())).status)
    }
  }
  expect(found).toEqual(expected)
})

test('403: a role that was taken away a moment ago, although the session still carries it', async () => {
  const { organizationId } = api.organization
  const caller = await signIn('developer', { [projectId]: 'project_admin' })
  expect((await caller.send(listProjectMembers, at())).status).toBe(200)
  const where = { organization_id: organizationId, member_id: caller.memberId }
  const take = (role: ProjectRole) =>
    api.db
      .updateTable('project_member')
      .set({ role })
      .where('organization_id', '=', where.organization_id)
      .where('member_id', '=', where.member_id)
      .execute()
  await take('project_member')
  const { memberId } = await signIn('viewer')
  const refused = [
    await caller.send(setProjectMember, { ...of(memberId), ...asAdmin }),
    await caller.send(deleteProjectMember, of(caller.memberId)),
    await caller.send(updateProject, { ...at(), body: { monthly_budget: null } }),
    await caller.send(createProjectApiKey, { ...at(), body: { name: 'K', own: false } }),
  ]
  expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403])
  expect(outcome(await caller.send(createProjectApiKey, { ...at(), body: { name: 'K' } }))).toBe(
    201,
  )
  await api.db.deleteFrom('project_member').where('member_id', '=', caller.memberId).execute()
  const none = await caller.send(createProjectApiKey, { ...at(), body: { name: 'K' } })
  expect(none.body.error.message).toBe(
    'You lack the permission projects.write, and are not a project_member of this project.',
  )
})

test('a project_admin sets limits and budgets, at most those of the organization, and key_defaults', async () => {
  const caller = await signIn('developer', { [projectId]: 'project_admin' })
  await api.send(saveGatewayConfig, {
    body: { config: { org_controls: { monthly_budget: { credits: 1000 } } } },
  })
  const set = async (body: object) => {
    const { status, body: answer } = await caller.send(updateProject, { ...at(), body })
    return status < 400 ? status : [status, answer.error.code, answer.error.param]
  }
  const tooMuch = [422, 'invalid_parameter', 'body.monthly_budget.credits']
  expect(await set({ monthly_budget: { credits: 1001 } })).toEqual(tooMuch)
  expect(await set({ monthly_budget: { credits: 1000 } })).toBe(200)
  expect(await set({ limits: { requests_per_minute: 1_000_000_000 } })).toEqual([
    422,
    'invalid_parameter',
    'body.limits.requests_per_minute',
  ])
  expect(await set({ limits: { requests_per_minute: 1 } })).toBe(200)
  expect(await set({ key_defaults: { expires_in_seconds: 60 } })).toBe(200)
  expect(await set({ name: 'Mine' })).toEqual([403, 'permission_denied', null])
  expect(await set({ name: 'Mine', limits: null })).toEqual([403, 'permission_denied', null])
  const key = await caller.send(createProjectApiKey, { ...at(), body: { name: 'K' } })
  const change = async (credits: number) =>
    outcome(
      await caller.send(updateProjectApiKey, {
        params: { project_id: projectId, key_id: key.body.id },
        body: { monthly_budget: { credits } },
      }),
    )
  expect([await change(1001), await change(1000)]).toEqual([[422, 'invalid_parameter'], 200])
  // Who has the permission is not held to it, as before.
  const wide = { ...at(), body: { monthly_budget: { credits: 5000 } } }
  expect(outcome(await api.send(updateProject, wide))).toBe(200)
})

test('key_defaults are replaced as a whole; null and empty ones remove them', async () => {
  const set = async (key_defaults: unknown) => {
    const answer = await api.send(updateProject, { ...at(), body: { key_defaults } })
    return (answer.body as { key_defaults?: unknown }).key_defaults
  }
  expect(await set({ expires_in_seconds: 60 })).toEqual({
    expires_in_seconds: 60,
    monthly_budget: null,
  })
  const budget = { credits: 5, alert_percents: [80, 100], hard_stop: true }
  expect(await set({ monthly_budget: { credits: 5 } })).toEqual({
    expires_in_seconds: null,
    monthly_budget: budget,
  })
  expect(await set(undefined)).toEqual({ expires_in_seconds: null, monthly_budget: budget })
  expect(await set({})).toBeNull()
  expect(await set({ expires_in_seconds: 60 })).not.toBeNull()
  expect(await set(null)).toBeNull()
  const refused = await api.send(updateProject, {
    ...at(),
    body: { key_defaults: { expires_in_seconds: 0 } },
  })
  expect(outcome(refused)).toEqual([422, 'invalid_parameter'])
})

test('keys have no role in a project: only their permissions count', async () => {
  const body = { name: 'Reader', permissions: ['projects.read'] }
  const { value: credential } = (await api.send(createAdminApiKey, { body })).body
  const { memberId } = await signIn('viewer')
  const put = await api.send(setProjectMember, { ...of(memberId), ...asMember, credential })
  expect(outcome(put)).toEqual([403, 'permission_denied'])
  expect(put.body.error.message).toBe('This credential lacks the permission projects.write.')
})

test('two admins who remove each other at once: one of them has lost the right', async () => {
  const admins = [
    await signIn('viewer', { [projectId]: 'project_admin' }),
    await signIn('viewer', { [projectId]: 'project_admin' }),
  ] as const
  const [one, other] = admins
  const answers = await Promise.all([
    one.send(deleteProjectMember, of(other.memberId)),
    other.send(deleteProjectMember, of(one.memberId)),
  ])
  const sorted = answers.map(({ status }) => status).toSorted((left, right) => left - right)
  expect(sorted).toEqual([200, 403])
  expect((await api.send(listProjectMembers, at())).body.data).toHaveLength(1)
})
