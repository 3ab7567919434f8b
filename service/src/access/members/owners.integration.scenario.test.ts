import { createAdminApiKey, listAdminApiKeys } from '@gatehouse/contract/api-key'
import { readMe } from '@gatehouse/contract/members/me'
import {
  createMember,
  deleteMember,
  listMembers,
  type MemberEdit,
  updateMember,
} from '@gatehouse/contract/members/member'
import { Role, rolePermissions } from '@gatehouse/contract/role'
import { beforeEach, expect, test } from 'vitest'

import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

// What members who have signed in may do with others, and that an active owner is always left.

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi()
})

type Person = Awaited<ReturnType<typeof signIn>>

async function signIn(role: Role) {
  const { organizationId } = api.organization
  const { memberId: id, token: credential } = await createMemberSession(api.house, {
    organizationId,
    role,
  })
  return { id, credential }
}

const outcome = async (sent: ReturnType<typeof api.send>) => {
  const { status, body } = await sent
  return status < 300 ? status : [status, body.error.code]
}
const edit = ({ credential }: Person, { id }: { id: string }, body: MemberEdit) =>
  outcome(api.send(updateMember, { credential, params: { member_id: id }, body }))
const remove = ({ credential }: Person, { id }: { id: string }) =>
  outcome(api.send(deleteMember, { credential, params: { member_id: id } }))
const invite = ({ credential }: Person, role: Role) => {
  const body = { email: `${role}-${Math.random()}@example.com`, role }
  return outcome(api.send(createMember, { credential, body }))
}

const activeOwners = async () => {
  const rows = await api.db
    .selectFrom('member')
    .select('id')
    .where('role', '=', 'owner')
    .where('status', '=', 'active')
    .execute()
  return rows.map(({ id }) => id)
}

const denied = [403, 'permission_denied']
const lastOwner = [409, 'last_owner']

test('an owner gives every role; an administrator every one but that of an owner', async () => {
  const [owner, admin] = [await signIn('owner'), await signIn('admin')]
  for (const role of Role.options) {
    expect(await invite(owner, role)).toBe(201)
    expect([role, await invite(admin, role)]).toEqual([role, role === 'owner' ? denied : 201])
  }
})

test('403: an administrator changes nothing about an owner, and makes none', async () => {
  const [owner, admin, viewer] = [
    await signIn('owner'),
    await signIn('admin'),
    await signIn('viewer'),
  ]
  await signIn('owner')
  for (const body of [
    { name: 'x' },
    { role: 'viewer' },
    { status: 'suspended' },
    { status: 'active' },
  ] as const) {
    expect(await edit(admin, owner, body)).toEqual(denied)
  }
  expect(await remove(admin, owner)).toEqual(denied)
  expect(await edit(admin, viewer, { role: 'owner' })).toEqual(denied)
  expect(await edit(admin, admin, { role: 'owner' })).toEqual(denied)
  expect(await edit(admin, viewer, { role: 'admin' })).toBe(200)
})

test('403: no other role manages members', async () => {
  await signIn('owner')
  const target = await signIn('viewer')
  for (const role of Role.options.filter((each) => !['owner', 'admin'].includes(each))) {
    const person = await signIn(role)
    expect(await invite(person, 'viewer')).toEqual(denied)
    expect(await edit(person, person, { role: 'owner' })).toEqual(denied)
    expect(await remove(person, target)).toEqual(denied)
  }
})

test('409: the last active owner cannot be removed, suspended or demoted, by itself or another', async () => {
  const owner = await signIn('owner')
  const other = await signIn('owner')
  expect(await edit(owner, other, { status: 'suspended' })).toBe(200)
  await invite(owner, 'owner') // an owner who has never signed in does not count
  expect(await edit(owner, owner, { role: 'admin' })).toEqual(lastOwner)
  expect(await edit(owner, owner, { status: 'suspended' })).toEqual(lastOwner)
  expect(await remove(owner, owner)).toEqual(lastOwner)
  expect(await edit(owner, owner, { name: 'Ada' })).toBe(200)
  const third = await signIn('owner')
  expect(await remove(third, owner)).toBe(200)
  expect(await activeOwners()).toEqual([third.id])
})

test.each(['demote', 'suspend', 'remove', 'any of these'])(
  'of sixteen owners who %s each other at once, at least one is left, in every round',
  async (how) => {
    for (let round = 0; round < 3; round++) {
      const owners = await Promise.all(Array.from({ length: 16 }, () => signIn('owner')))
      const acts = [
        (by: Person, of: Person) => edit(by, of, { role: 'viewer' }),
        (by: Person, of: Person) => edit(by, of, { status: 'suspended' }),
        remove,
      ]
      const fixed = ['demote', 'suspend', 'remove'].indexOf(how)
      const outcomes = await Promise.all(
        owners.map((by, at) => {
          const act = acts[fixed < 0 ? at % 3 : fixed]!
          // Those before have been there since the last round.
          return act(by, owners[(at + 1) % owners.length]!)
        }),
      )
      const left = await activeOwners()
      expect(left.length).toBeGreaterThanOrEqual(1)
      expect(outcomes.filter((each) => each === 200).length).toBeGreaterThanOrEqual(1)
      // Only who was still an owner has done something.
      for (const each of outcomes) {
        expect([
          200,
          denied,
          lastOwner,
          [404, 'member_not_found'],
          [401, 'invalid_session'],
        ]).toContainEqual(each)
      }
      await api.db.deleteFrom('member').execute()
    }
  },
  60_000,
)

test('sixteen owners leave at once: one cannot', async () => {
  const owners = await Promise.all(Array.from({ length: 16 }, () => signIn('owner')))
  const outcomes = await Promise.all(owners.map((owner) => remove(owner, owner)))
  expect(outcomes.filter((each) => each === 200)).toHaveLength(15)
  expect(outcomes).toContainEqual(lastOwner)
  expect(await activeOwners()).toHaveLength(1)
})

test('a role that was lost gives nothing, also while its session still has it', async () => {
  const [owner, admin, other] = [
    await signIn('owner'),
    await signIn('admin'),
    await signIn('owner'),
  ]
  const target = await signIn('viewer')
  // Sessions that this process knows, and is told nothing about.
  for (const person of [admin, other]) await api.send(listMembers, person)
  await api.house.follower.stop()
  const demote = (id: string, role: Role) =>
    api.db.updateTable('member').set({ role }).where('id', '=', id).execute()
  await demote(other.id, 'admin')
  expect(await edit(other, target, { role: 'owner' })).toEqual(denied)
  await demote(admin.id, 'viewer')
  expect((await api.send(listMembers, admin)).status).toBe(200)
  expect(await edit(admin, target, { name: 'x' })).toEqual(denied)
  expect(await edit(owner, target, { role: 'owner' })).toBe(200)
})

test('another role, a suspension and a removal are in force within seconds', async () => {
  const owner = await signIn('owner')
  const [promoted, suspended, removed] = [
    await signIn('viewer'),
    await signIn('admin'),
    await signIn('admin'),
  ]
  const read = (person: Person) => outcome(api.send(listAdminApiKeys, person))
  expect(await read(promoted)).toEqual(denied)
  expect([await read(suspended), await read(removed)]).toEqual([200, 200])
  await edit(owner, promoted, { role: 'auditor' })
  await edit(owner, suspended, { status: 'suspended' })
  await remove(owner, removed)
  await expect.poll(() => read(promoted), { timeout: 20_000 }).toBe(200)
  for (const person of [suspended, removed]) {
    await expect.poll(() => read(person), { timeout: 20_000 }).toEqual([401, 'invalid_session'])
  }
  // What was open before the suspension has ended for good.
  await edit(owner, suspended, { status: 'active' })
  expect(await read(suspended)).toEqual([401, 'invalid_session'])
})

test('me: a member learns the role, where it comes from, and the projects', async () => {
  const { organizationId, projectId } = api.organization
  const { memberId, token: credential } = await createMemberSession(api.house, {
    organizationId,
    role: 'developer',
    projectRoles: { [projectId]: 'project_admin' },
  })
  await api.db.updateTable('member').set({ role_source: 'engineers' }).execute()
  const { body } = await api.send(readMe, { credential })
  expect(body).toMatchObject({
    credential: { kind: 'session', id: null },
    member: { id: memberId, role: 'developer', status: 'active' },
    role: 'developer',
    role_source: 'engineers',
    organization: { id: organizationId },
    permissions: rolePermissions.developer,
    projects: [{ id: projectId, name: 'Default', role: 'project_admin' }],
    has_more_projects: false,
  })
})

test('what members do is recorded under their ids', async () => {
  const owner = await signIn('owner')
  await invite(owner, 'viewer')
  const created = await api.send(createAdminApiKey, {
    credential: owner.credential,
    body: { name: 'key', permissions: [] },
  })
  expect(created.status).toBe(201)
  const rows = await api.db
    .selectFrom('event')
    .select('header')
    .where('kind', '=', 'revision')
    .execute()
  const actors = rows
    .map(({ header }) => header as { action: string; object: string; actor: string })
    .filter(({ action, object }) => action === 'created' && /member|key/.test(object))
    .map(({ actor }) => actor)
  expect(actors).toEqual([owner.id, owner.id])
})
