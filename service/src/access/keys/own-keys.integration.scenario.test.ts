import {
  createAdminApiKey,
  createProjectApiKey,
  deleteProjectApiKey,
  listProjectApiKeys,
} from '@gatehouse/contract/api-key'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { deleteProjectMember } from '@gatehouse/contract/members/project-member'
import { updateProject } from '@gatehouse/contract/project'
import type { ProjectRole, Role } from '@gatehouse/contract/role'
import { beforeEach, expect, test } from 'vitest'

import type { House } from '#assemble.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
let projectId: string
beforeEach(async () => {
  api = await createTestApi()
  projectId = api.organization.projectId
})

type Sent = NonNullable<Parameters<typeof api.send>[1]>
type Key = { id: string; value: string; owner: object; expires_at?: number } & Created
type Created = { created_at: number; monthly_budget: { credits: number } | null }

async function signIn(role: Role, projectRole?: ProjectRole) {
  const { memberId, token } = await createMemberSession(api.house, {
    organizationId: api.organization.organizationId,
    role,
    ...(projectRole && { projectRoles: { [projectId]: projectRole } }),
  })
  const send = (endpoint: Endpoint, sent: Sent = {}) =>
    api.send(endpoint, { credential: token, ...at(), ...sent })
  const make = async (more: object = {}, headers: Record<string, string> = {}) => {
    const answer = await send(createProjectApiKey, { body: { name: 'Mine', ...more }, headers })
    return answer as typeof answer & { body: Key }
  }
  return { memberId, send, make }
}

const at = () => ({ params: { project_id: projectId } })
const of = (key_id: string) => ({ params: { project_id: projectId, key_id } })
const outcome = ({ status, body }: Awaited<ReturnType<typeof api.send>>) =>
  status < 400 ? status : [status, body.error.code, body.error.param]
const listed = async (caller: { send: typeof api.send }, query: Record<string, string> = {}) =>
  (await caller.send(listProjectApiKeys, { ...at(), query })).body.data.map(({ id }) => id)

test('201: whose a new key is', async () => {
  const { organizationId } = api.organization
  const [member, manager, owner, joined] = [
    await signIn('developer', 'project_member'),
    await signIn('developer', 'project_admin'),
    await signIn('owner'),
    await signIn('owner', 'project_member'),
  ]
  const ofOrganization = { id: organizationId, type: 'organization' }
  const ofMember = ({ memberId }: { memberId: string }) => ({ id: memberId, type: 'member' })
  expect((await member.make()).body.owner).toEqual(ofMember(member))
  expect((await manager.make()).body.owner).toEqual(ofMember(manager))
  expect((await manager.make({ own: false })).body.owner).toEqual(ofOrganization)
  expect((await owner.make()).body.owner).toEqual(ofOrganization)
  expect((await joined.make()).body.owner).toEqual(ofOrganization)
  expect((await joined.make({ own: true })).body.owner).toEqual(ofMember(joined))
  expect(outcome(await member.make({ own: false }))).toEqual([403, 'permission_denied', null])
  const notJoined = [422, 'invalid_parameter', 'body.own']
  expect(outcome(await owner.make({ own: true }))).toEqual(notJoined)
  const byKey = await api.send(createProjectApiKey, { ...at(), body: { name: 'K', own: true } })
  expect(outcome(byKey)).toEqual(notJoined)
})

test('403: an own key has at most the default permissions, whatever its maker may do', async () => {
  const owner = await signIn('owner', 'project_admin')
  const member = await signIn('auditor', 'project_member')
  const wide = { permissions: ['model.invoke', 'exports.read'] }
  const refused = [403, 'permission_denied', null]
  expect(outcome(await owner.make({ own: true, ...wide }))).toEqual(refused)
  expect(outcome(await member.make(wide))).toEqual(refused)
  expect(outcome(await owner.make(wide))).toBe(201)
  expect((await member.make()).body.permissions).toEqual([
    'model.invoke',
    'credits.read',
    'policy_gateway.read',
  ])
  expect((await member.make({ permissions: ['model.invoke'] })).body.permissions).toEqual([
    'model.invoke',
  ])
})

test('a project_member revokes own keys and no other; a project_admin all of the project', async () => {
  const [ada, bob, manager] = [
    await signIn('viewer', 'project_member'),
    await signIn('viewer', 'project_member'),
    await signIn('viewer', 'project_admin'),
  ]
  const [one, two] = [(await ada.make()).body, (await bob.make()).body]
  const three = (await api.send(createProjectApiKey, { ...at(), body: { name: 'K' } })).body
  const none = [404, 'api_key_not_found', null]
  for (const { id } of [two, three]) {
    expect(outcome(await ada.send(deleteProjectApiKey, of(id)))).toEqual(none)
  }
  expect(outcome(await ada.send(deleteProjectApiKey, of(one.id)))).toBe(200)
  expect(outcome(await ada.send(deleteProjectApiKey, of(one.id)))).toEqual(none)
  for (const { id } of [two, three]) {
    expect(outcome(await manager.send(deleteProjectApiKey, of(id)))).toBe(200)
  }
})

test('a list of keys can be that of one member', async () => {
  const [ada, bob] = [
    await signIn('viewer', 'project_member'),
    await signIn('viewer', 'project_member'),
  ]
  const keys = [(await ada.make()).body.id, (await bob.make()).body.id, (await ada.make()).body.id]
  expect(await listed(ada)).toEqual(keys) // by projects.read, which every role has
  expect(await listed(bob, { member_id: ada.memberId })).toEqual([keys[0], keys[2]])
  expect(await listed(bob, { member_id: ada.memberId, after: keys[0]! })).toEqual([keys[2]])
  expect(await listed(bob, { member_id: 'mem_none' })).toEqual([])
})

/** No role lacks projects.read today. */
function withoutReading(house: House): House {
  const { authentication } = house.access
  const bySession: typeof authentication.bySession = async (...asked) => ({
    ...(await authentication.bySession(...asked)),
    permissions: new Set(),
  })
  return { ...house, access: { ...house.access, authentication: { ...authentication, bySession } } }
}

test('without projects.read, a project_member sees own keys only, and a project_admin all', async () => {
  api = await createTestApi({ change: withoutReading })
  projectId = api.organization.projectId
  const [ada, bob, manager, none] = [
    await signIn('viewer', 'project_member'),
    await signIn('viewer', 'project_member'),
    await signIn('viewer', 'project_admin'),
    await signIn('viewer'),
  ]
  const keys = [(await ada.make()).body.id, (await bob.make()).body.id]
  expect(await listed(ada)).toEqual([keys[0]])
  expect(await listed(ada, { member_id: bob.memberId })).toEqual([])
  expect(await listed(ada, { member_id: ada.memberId })).toEqual([keys[0]])
  const foreign = await ada.send(listProjectApiKeys, { ...at(), query: { after: keys[1]! } })
  expect(outcome(foreign)).toEqual([400, 'invalid_cursor', 'query.after'])
  expect(await listed(manager)).toEqual(keys)
  expect((await none.send(listProjectApiKeys)).status).toBe(403)
})

test('the project prescribes expiry and budget of own keys; more is refused, less is granted', async () => {
  const ada = await signIn('developer', 'project_member')
  const key_defaults = { expires_in_seconds: 3600, monthly_budget: { credits: 100 } }
  const before = (await ada.make({ expires_in_seconds: null })).body
  expect([before.expires_at, before.monthly_budget]).toEqual([undefined, null])
  await api.send(updateProject, { ...at(), body: { key_defaults } })
  const plain = (await ada.make({ expires_in_seconds: null, monthly_budget: null })).body
  expect([plain.expires_at, plain.monthly_budget]).toEqual([
    plain.created_at + 3600,
    { credits: 100, alert_percents: [80, 100], hard_stop: true },
  ])
  const less = (await ada.make({ expires_in_seconds: 60, monthly_budget: { credits: 7 } })).body
  expect([less.expires_at, less.monthly_budget?.credits]).toEqual([less.created_at + 60, 7])
  for (const [more, param] of [
    [{ expires_in_seconds: 3601 }, 'body.expires_in_seconds'],
    [{ monthly_budget: { credits: 101 } }, 'body.monthly_budget'],
    [{ monthly_budget: { credits: 1, hard_stop: false } }, 'body.monthly_budget'],
  ] as const) {
    expect(outcome(await ada.make(more))).toEqual([422, 'invalid_parameter', param])
  }
  // The organization's keys are not meant.
  const ofOrganization = await api.send(createProjectApiKey, { ...at(), body: { name: 'K' } })
  expect(ofOrganization.body).toMatchObject({ monthly_budget: null })
  expect(ofOrganization.body).not.toHaveProperty('expires_at')
})

test('409: a member has at most 100 own keys at a time', async () => {
  const ada = await signIn('developer', 'project_member')
  const made = []
  for (let count = 0; count < 100; count++) made.push((await ada.make()).status)
  expect(new Set(made)).toEqual(new Set([201]))
  expect(outcome(await ada.make())).toEqual([409, 'limit_reached', null])
  const [first] = await listed(ada)
  await ada.send(deleteProjectApiKey, of(first!))
  expect(outcome(await ada.make())).toBe(201)
})

test('an Idempotency-Key is a person’s own: it never shows the secret of another person’s key', async () => {
  const [ada, bob] = [
    await signIn('developer', 'project_member'),
    await signIn('developer', 'project_member'),
  ]
  const headers = { 'idempotency-key': '1' }
  const first = await ada.make({}, headers)
  const replayed = await ada.make({}, headers)
  expect(replayed.body.value).toBe(first.body.value)
  const others = await bob.make({}, headers)
  expect([others.status, others.headers['idempotent-replayed']]).toEqual([201, undefined])
  expect(others.body.owner).toEqual({ id: bob.memberId, type: 'member' })
})

test('a member who leaves while making keys has none afterwards', async () => {
  const { memberId, make } = await signIn('developer', 'project_member')
  const params = { project_id: projectId, member_id: memberId }
  await Promise.all([
    ...Array.from({ length: 10 }, () => make()),
    api.send(deleteProjectMember, { params }),
    ...Array.from({ length: 10 }, () => make()),
  ])
  const active = await api.db
    .selectFrom('api_key')
    .select('id')
    .where('member_id', '=', memberId)
    .where('revoked_at', 'is', null)
    .execute()
  expect(active).toEqual([])
})

test('administrator keys belong to the organization, also those that people make', async () => {
  const owner = await signIn('owner', 'project_admin')
  const made = await owner.send(createAdminApiKey, { body: { name: 'K', permissions: [] } })
  expect(made.body).toMatchObject({ owner: { type: 'organization' } })
})
