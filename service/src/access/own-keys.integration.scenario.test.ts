import { afterAll, expect, test } from 'vitest'

import { operator } from '#audit/event.ts'
import { createId } from '#platform/id.ts'
import { transact } from '#platform/transaction.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import {
  createProject,
  createProjectKey,
  createTenant,
  createTestClock,
  createTestGateway,
} from '#testing/test-gateway.ts'

import { endOwnKeys } from './keys/end-own-keys.ts'
import { removeProjectMember, saveProjectMember } from './members/project-member-store.ts'

// A key that a person has made for themself works exactly as long as the person is an active member of its project. The
// rows are changed here without anything that a well-behaved endpoint would do besides, unless a test says so: the
// lookup alone has to refuse the key.

const everything = new AsyncDisposableStack()
afterAll(() => everything.disposeAsync())

const clock = createTestClock()
const database = everything.use(await createTestDatabase())
const gateway = everything.use(
  await createTestGateway({ databaseUrl: database.url, now: clock.now }),
)
const { house } = gateway
const { db } = house
const tenant = await createTenant(house)
const { organizationId, projectId } = tenant

async function createMember() {
  const now = clock.now()
  const memberId = createId('mem', now)
  const email = `${memberId}@example.com`
  const person = { organization_id: organizationId, id: memberId, email, name: 'Ada' }
  await db
    .insertInto('member')
    .values({ ...person, role: 'developer', status: 'active', created_at: now })
    .execute()
  const membership = { organizationId, projectId, memberId }
  const join = () =>
    transact(db, (tx) => saveProjectMember(tx, membership, { role: 'project_member', now }))
  await join()
  const makeKey = () => createProjectKey(house, tenant, {}, { memberId, defaults: null })
  return {
    memberId,
    join,
    makeKey,
    leave: () => transact(db, (tx) => removeProjectMember(tx, membership)),
    endKeys: () => transact(db, (tx) => endOwnKeys(tx, membership, operator, house)),
    setStatus: (status: string) =>
      db.updateTable('member').set({ status }).where('id', '=', memberId).execute(),
    leaveOrganization: () => db.deleteFrom('member').where('id', '=', memberId).execute(),
  }
}
type Member = Awaited<ReturnType<typeof createMember>>

/** What every change of a member says to the processes. */
const tell = (memberId: string) =>
  transact(db, (tx) =>
    house.announce(tx, {
      organizationId,
      by: operator,
      action: 'updated',
      before: { id: memberId, object: 'organization.member' },
      after: { id: memberId, object: 'organization.member' },
      notifies: 'member',
    }),
  )

async function codeOf({ headers }: { headers: Record<string, string> }) {
  const answer = await gateway.call('/v1/models', { headers })
  return answer.json<{ error?: { code: string } }>().error?.code ?? answer.statusCode
}

test.each([
  ['is suspended', (member: Member) => member.setStatus('suspended')],
  ['is invited again', (member: Member) => member.setStatus('invited')],
  ['leaves the project', (member: Member) => member.leave()],
  ['leaves the organization', (member: Member) => member.leaveOrganization()],
] as const)(
  '401: every key of a person who %s, although nothing was revoked',
  async (_, change) => {
    const member = await createMember()
    const colleague = await createMember()
    const keys = [await member.makeKey(), await member.makeKey()]
    const [other, ofOrganization] = [
      await colleague.makeKey(),
      await createProjectKey(house, tenant),
    ]
    const all = [...keys, other, ofOrganization]
    expect(await Promise.all(all.map(codeOf))).toEqual([200, 200, 200, 200])
    await change(member)
    await tell(member.memberId)
    const ended = ['revoked_api_key', 'revoked_api_key', 200, 200]
    await expect.poll(() => Promise.all(all.map(codeOf))).toEqual(ended)
  },
)

test('a reinstated person finds the keys working again', async () => {
  const member = await createMember()
  const key = await member.makeKey()
  await member.setStatus('suspended')
  expect(await codeOf(key)).toBe('revoked_api_key')
  await member.setStatus('active')
  await tell(member.memberId)
  await expect.poll(() => codeOf(key)).toBe(200)
})

test('a person who left and joins again does not find them working again', async () => {
  const member = await createMember()
  const key = await member.makeKey()
  await member.leave()
  await member.endKeys()
  await member.join()
  await tell(member.memberId)
  await expect.poll(() => codeOf(key)).toBe('revoked_api_key')
  expect(await codeOf(await member.makeKey())).toBe(200)
})

test('a membership of another project does not keep a key alive', async () => {
  const member = await createMember()
  const key = await member.makeKey()
  const another = { organizationId, memberId: member.memberId }
  const elsewhere = { ...another, projectId: await createProject(house, organizationId) }
  const now = clock.now()
  await transact(db, (tx) => saveProjectMember(tx, elsewhere, { role: 'project_admin', now }))
  await member.leave()
  expect(await codeOf(key)).toBe('revoked_api_key')
})

test('the end of the keys is an event for each, by whom it was brought about', async () => {
  const member = await createMember()
  const made = [await member.makeKey(), await member.makeKey()]
  await member.endKeys()
  const events = await db
    .selectFrom('event')
    .select('header')
    .where('organization_id', '=', organizationId)
    .execute()
  for (const { id } of made) {
    expect(events.map(({ header }) => header)).toContainEqual(
      expect.objectContaining({ action: 'deleted', object_id: id, actor: 'operator' }),
    )
  }
})
