import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { readMe } from '@gatehouse/contract/members/me'
import {
  createMember,
  deleteMember,
  listMembers,
  listRoles,
  type Member,
  retrieveMember,
  updateMember,
} from '@gatehouse/contract/members/member'
import { Role, rolePermissions } from '@gatehouse/contract/role'
import { beforeEach, expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi()
})

type Sent = NonNullable<Parameters<typeof api.send>[1]>

const invite = async (body: object, sent: Sent = {}) => {
  const answer = await api.send(createMember, { ...sent, body })
  return answer as typeof answer & { body: Member & Partial<Invitation> }
}
type Invitation = { invitation_url: string | null; invitation_expires_at: number | null }
const at = (id: string) => ({ params: { member_id: id } })
const edit = (id: string, body: object, sent: Sent = {}) =>
  api.send(updateMember, { ...sent, ...at(id), body })
const keyWith = async (...permissions: string[]) => {
  const { body } = await api.send(createAdminApiKey, { body: { name: 'key', permissions } })
  return { credential: body.value }
}
const outcomeOf = ({ status, body }: { status: number; body: { error: { code: string } } }) => [
  status,
  body.error.code,
]
const revisions = async () => {
  const rows = await api.db
    .selectFrom('event')
    .select(['header'])
    .where('kind', '=', 'revision')
    .orderBy('at')
    .orderBy('id')
    .execute()
  return rows
    .map(({ header }) => header as { object: string; action: string; object_id: string })
    .filter(({ object }) => object === 'organization.member')
}
const changes = () => api.db.selectFrom('config_change').select(['kind', 'object_id']).execute()

test('201, 200: a member is invited, read, changed and removed', async () => {
  const made = await invite({ email: ' Ada.L@Example.COM ', role: 'viewer' })
  expect(made.status).toBe(201)
  expect(made.body).toMatchObject({
    object: 'organization.member',
    email: 'ada.l@example.com',
    name: 'ada.l',
    role: 'viewer',
    role_source: 'assigned',
    status: 'invited',
    last_seen_at: null,
  })
  const { invitation_url, invitation_expires_at, ...member } = made.body
  expect([invitation_url, invitation_expires_at], 'without PUBLIC_URL').toEqual([null, null])
  const { id } = member
  const edited = await edit(id, { name: '  Ada ', role: 'auditor' })
  expect(edited.body).toEqual({ ...member, name: 'Ada', role: 'auditor' })
  expect((await api.send(retrieveMember, at(id))).body).toEqual(edited.body)
  const removed = await api.send(deleteMember, at(id))
  expect(removed.body).toEqual({ id, object: 'organization.member.deleted', deleted: true })
  for (const endpoint of [retrieveMember, deleteMember]) {
    expect(outcomeOf(await api.send(endpoint, at(id)))).toEqual([404, 'member_not_found'])
  }
  expect(outcomeOf(await edit(id, { name: 'Eve' }))).toEqual([404, 'member_not_found'])
})

test('every change is an event, and all but an invitation reach every process', async () => {
  const { id } = (await invite({ email: 'ada@example.com', role: 'viewer' })).body
  await edit(id, { name: 'Ada' })
  await edit(id, { name: 'Ada', role: 'viewer' }) // changes nothing
  await edit(id, { status: 'suspended', role: 'developer' })
  await edit(id, { status: 'active' })
  await api.send(deleteMember, at(id))
  const actions = ['created', 'updated', 'suspended', 'reinstated', 'deleted']
  expect(await revisions()).toMatchObject(
    actions.map((action) => ({ action, object_id: id, object: 'organization.member' })),
  )
  expect(await changes()).toEqual(Array(4).fill({ kind: 'member', object_id: id }))
})

test('a member who has never signed in is invited again when a suspension ends', async () => {
  const { id } = (await invite({ email: 'ada@example.com', role: 'viewer' })).body
  expect((await edit(id, { status: 'active' })).body).toMatchObject({ status: 'invited' })
  expect((await edit(id, { status: 'suspended' })).body).toMatchObject({ status: 'suspended' })
  expect((await edit(id, { status: 'active' })).body).toMatchObject({ status: 'invited' })
  const seen = { status: 'suspended', last_seen_at: new Date() }
  await api.db.updateTable('member').set(seen).where('id', '=', id).execute()
  expect((await edit(id, { status: 'active' })).body).toMatchObject({ status: 'active' })
})

test('a role that a group has given is assigned once it is set', async () => {
  const { id } = (await invite({ email: 'ada@example.com', role: 'viewer' })).body
  const given = { role_source: 'engineers' }
  await api.db.updateTable('member').set(given).where('id', '=', id).execute()
  expect((await edit(id, { name: 'Ada' })).body).toMatchObject(given)
  expect((await edit(id, { role: 'viewer' })).body).toMatchObject({ role_source: 'assigned' })
})

test('409: an address that another member has, however it is written', async () => {
  await invite({ email: 'ada@example.com', role: 'viewer' })
  const again = await invite({ email: 'ADA@example.com', role: 'viewer' })
  expect([...outcomeOf(again as never), again.headers['x-should-retry']]).toEqual([
    409,
    'member_email_taken',
    'false',
  ])
})

test('of sixteen invitations of one address at once, one succeeds', async () => {
  const answers = await Promise.all(
    Array.from({ length: 16 }, () => invite({ email: 'ada@example.com', role: 'viewer' })),
  )
  const statuses = answers.map(({ status }) => String(status)).toSorted()
  expect(statuses).toEqual(['201', ...Array(15).fill('409')])
})

test('the list is paged, and filtered by status, role and address', async () => {
  const emails = ['ada', 'bob', 'cy', 'dot'].map((name) => `${name}@example.com`)
  const ids: string[] = []
  for (const email of emails) {
    ids.push((await invite({ email, role: email < 'c' ? 'viewer' : 'auditor' })).body.id)
  }
  await edit(ids[3]!, { status: 'suspended' })
  const list = async (query: Record<string, string>) =>
    (await api.send(listMembers, { query })).body.data.map(({ id }) => id)
  expect(await list({})).toEqual(ids)
  expect(await list({ order: 'desc', limit: '3' })).toEqual(ids.toReversed().slice(0, 3))
  expect(await list({ after: ids[1]!, limit: '1' })).toEqual([ids[2]])
  expect(await list({ role: 'auditor' })).toEqual(ids.slice(2))
  expect(await list({ role: 'auditor', status: 'invited' })).toEqual([ids[2]])
  expect(await list({ email: 'BOB@example.com' })).toEqual([ids[1]])
  // A cursor need not pass the filter: the position is what counts.
  expect(await list({ role: 'auditor', after: ids[0]! })).toEqual(ids.slice(2))
  const wrong = await api.send(listMembers, { query: { role: 'king' } })
  expect(outcomeOf(wrong)).toEqual([422, 'invalid_parameter'])
})

test.each([
  'ada',
  'ada@',
  '@example.com',
  'ada@exa mple.com',
  'ada@example..com',
  'ad\na@example.com',
  'ådä@example.com',
  `${'a'.repeat(65)}@example.com`,
  `ada@${'a'.repeat(251)}`,
])('422: the address %j', async (email) => {
  const answer = await api.send(createMember, { body: { email, role: 'viewer' } })
  expect([answer.status, answer.body.error.param]).toEqual([422, 'body.email'])
})

test.each([
  [{}, 'invalid_parameter'],
  [{ role: 'king' }, 'invalid_parameter'],
  [{ status: 'invited' }, 'invalid_parameter'],
  [{ email: 'bob@example.com' }, 'unknown_field'],
  [{ name: '' }, 'invalid_parameter'],
])('422: the change %j', async (body, code) => {
  const { id } = (await invite({ email: 'ada@example.com', role: 'viewer' })).body
  expect(outcomeOf(await edit(id, body))).toEqual([422, code])
})

test('409: an organization has at most 10,000 members', async () => {
  const { organizationId } = api.organization
  const rows = Array.from({ length: 10_000 }, (_, at) => ({
    organization_id: organizationId,
    id: `mem_${at}`,
    email: `${at}@example.com`,
    name: 'x',
    role: 'viewer',
    status: 'invited',
    created_at: new Date(),
  }))
  for (let from = 0; from < rows.length; from += 5000) {
    await api.db
      .insertInto('member')
      .values(rows.slice(from, from + 5000))
      .execute()
  }
  const refused = await invite({ email: 'ada@example.com', role: 'viewer' })
  expect(outcomeOf(refused as never)).toEqual([409, 'limit_reached'])
})

test('a key gives only roles whose permissions it has', async () => {
  const narrow = await keyWith('members.write', 'projects.read', 'credits.read')
  const given: [string, number][] = []
  for (const role of Role.options) {
    const { status } = await invite({ email: `${role}@example.com`, role }, narrow)
    given.push([role, status])
  }
  const allowed = given.filter(([, status]) => status === 201).map(([role]) => role)
  expect([allowed, new Set(given.map(([, status]) => status))]).toEqual([
    ['developer'],
    new Set([201, 403]),
  ])
  const { id } = (await invite({ email: 'ada@example.com', role: 'billing' })).body
  expect(outcomeOf(await edit(id, { role: 'viewer' }, narrow))).toEqual([403, 'permission_denied'])
  // To take away needs none of what is taken.
  expect((await edit(id, { status: 'suspended' }, narrow)).status).toBe(200)
  const refused = await edit(id, { status: 'active' }, narrow)
  expect(outcomeOf(refused)).toEqual([403, 'permission_denied'])
  expect(refused.headers['www-authenticate']).toBe(
    'Bearer error="insufficient_scope", scope="credits.write"',
  )
  expect((await edit(id, { role: 'developer' }, narrow)).status).toBe(200)
  expect((await edit(id, { status: 'active' }, narrow)).status).toBe(200)
})

test('while no owner is active, a key that manages keys can make one, and nothing else', async () => {
  const earlier = await keyWith('admin_api_keys.write')
  const other = { email: 'bob@example.com', role: 'viewer' }
  const refused = await invite(other, earlier)
  expect(outcomeOf(refused as never)).toEqual([403, 'permission_denied'])
  expect(refused.headers['www-authenticate']).toContain('scope="members.write"')
  const made = await invite({ email: 'ada@example.com', role: 'owner' }, earlier)
  expect(made.status).toBe(201)
  // A mistyped address would otherwise be the only owner for ever.
  const second = await invite({ email: 'eda@example.com', role: 'owner' })
  expect((await api.send(deleteMember, at(second.body.id))).status).toBe(200)
  const without = await keyWith('members.write', 'members.read')
  const wished = await invite({ email: 'eve@example.com', role: 'owner' }, without)
  expect(outcomeOf(wished as never)).toEqual([403, 'permission_denied'])
  await signIn(made.body.id)
  for (const key of [earlier, {}]) {
    const late = await invite({ email: 'eve@example.com', role: 'owner' }, key)
    expect(outcomeOf(late as never)).toEqual([403, 'permission_denied'])
  }
})

const signIn = (id: string) =>
  api.db
    .updateTable('member')
    .set({ status: 'active', last_seen_at: new Date() })
    .where('id', '=', id)
    .execute()

test('403: no key changes an owner once one is active', async () => {
  const { id } = (await invite({ email: 'ada@example.com', role: 'owner' })).body
  const { id: other } = (await invite({ email: 'bob@example.com', role: 'owner' })).body
  await signIn(id)
  for (const body of [{ name: 'x' }, { role: 'viewer' }, { status: 'suspended' }]) {
    for (const each of [id, other]) {
      expect(outcomeOf(await edit(each, body))).toEqual([403, 'permission_denied'])
    }
  }
  expect(outcomeOf(await api.send(deleteMember, at(other)))).toEqual([403, 'permission_denied'])
  const { id: viewer } = (await invite({ email: 'cy@example.com', role: 'viewer' })).body
  expect(outcomeOf(await edit(viewer, { role: 'owner' }))).toEqual([403, 'permission_denied'])
})

test('roles are listed with their permissions', async () => {
  const { body } = await api.send(listRoles)
  expect(body.data).toMatchObject(
    Role.options.map((id) => ({
      id,
      object: 'organization.role',
      permissions: rolePermissions[id],
    })),
  )
  expect([body.has_more, body.first_id, body.last_id]).toEqual([false, 'owner', 'viewer'])
})

test('me: a key without permissions learns who it is', async () => {
  const empty = await keyWith()
  const { status, body } = await api.send(readMe, empty)
  expect(status).toBe(200)
  const { organizationId } = api.organization
  expect(body).toEqual({
    object: 'organization.me',
    credential: { kind: 'admin_key', id: expect.stringMatching(/^key_/) as string },
    member: null,
    csrf_token: null,
    role: null,
    role_source: null,
    organization: { id: organizationId, name: 'Example Ltd' },
    permissions: [],
    read_only: false,
    projects: [],
    has_more_projects: false,
    plan: 'free',
    tier: 'free',
    billing: 'prepaid',
    features: { judge: expect.any(Boolean) as boolean, tokens: false, payments: false },
  })
})
