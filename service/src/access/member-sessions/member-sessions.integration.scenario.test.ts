import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import { readMe } from '@gatehouse/contract/members/me'
import {
  deleteMemberSession,
  deleteMemberSessions,
  listMemberSessions,
} from '@gatehouse/contract/members/session'
import type { Role } from '@gatehouse/contract/role'
import { expect, test } from 'vitest'

import { sessionsMax, startSession } from '#access/sessions/start-session.ts'
import { transact } from '#platform/transaction.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

const minuteMs = 60_000

async function start() {
  const clock = createTestClock()
  const api = await createTestApi({ now: clock.now })
  const { house, organization, send } = api
  const { organizationId } = organization
  const signIn = (role: Role) => createMemberSession(house, { organizationId, role })
  /** Another session of a member who has one. */
  const signInAgain = async (memberId: string, form: 'browser' | 'token' = 'token') => {
    clock.pass(1)
    const started = await transact(house.db, (tx) =>
      startSession(
        tx,
        {
          owner: { organizationId, memberId },
          form,
          method: 'link',
          requestId: null,
          now: house.now(),
        },
        { ...house, sessionMaxMs: house.access.sessionMaxMs },
      ),
    )
    return started!
  }
  const listOf = async (member_id: string, credential = organization.adminKey) => {
    const { body } = await send(listMemberSessions, { params: { member_id }, credential })
    return listMemberSessions.response.parse(body).data
  }
  const statusOf = async (credential: string) => (await send(readMe, { credential })).status
  return { ...api, clock, signIn, signInAgain, listOf, statusOf }
}

test('200: people see where they are signed in, the newest first, and which session is this one', async () => {
  const { signIn, signInAgain, listOf, house } = await start()
  const ada = await signIn('viewer')
  const laptop = await signInAgain(ada.memberId, 'browser')
  await signIn('viewer') // a session that is not in the list
  const found = await listOf(ada.memberId, ada.token)
  expect(found.map(({ id, is_current }) => [id, is_current])).toEqual([
    [laptop.id, false],
    [ada.sessionId, true],
  ])
  const now = Math.floor(house.now().getTime() / 1000)
  expect(found[0]).toEqual({
    id: laptop.id,
    object: 'organization.session',
    member_id: ada.memberId,
    form: 'browser',
    method: 'link',
    created_at: now,
    last_seen_at: now,
    expires_at: now + 8 * 3600,
    is_current: false,
  })
  expect(await listOf(ada.memberId)).toHaveLength(2)
})

test('a session that has ended, has lasted too long or was not used for an hour is not listed', async () => {
  const { signIn, listOf, clock, db } = await start()
  const ada = await signIn('viewer')
  expect(await listOf(ada.memberId)).toHaveLength(1)
  clock.pass(60 * minuteMs - 1)
  expect(await listOf(ada.memberId)).toHaveLength(1)
  clock.pass(1)
  expect(await listOf(ada.memberId)).toHaveLength(0)
  const bob = await signIn('viewer')
  await db.updateTable('session').set({ last_seen_at: clock.now() }).execute()
  expect(await listOf(bob.memberId)).toHaveLength(1)
  clock.pass(8 * 60 * minuteMs)
  await db.updateTable('session').set({ last_seen_at: clock.now() }).execute()
  expect(await listOf(bob.memberId)).toHaveLength(0)
})

test('200: people sign out everywhere, also where they call from', async () => {
  const { signIn, signInAgain, send, statusOf } = await start()
  const ada = await signIn('viewer')
  const other = await signInAgain(ada.memberId)
  const bob = await signIn('viewer')
  const params = { member_id: ada.memberId }
  const sent = { params, credential: ada.token }
  const { status, body } = await send(deleteMemberSessions, sent)
  expect([status, body.id]).toEqual([200, ada.memberId])
  for (const token of [ada.token, other.token]) {
    await expect.poll(() => statusOf(token), { timeout: 20_000 }).toBe(401)
  }
  expect(await statusOf(bob.token)).toBe(200)
})

test('200: one session ends and the others go on; 404 when it has ended, or is of another member', async () => {
  const { signIn, signInAgain, send, statusOf } = await start()
  const ada = await signIn('viewer')
  const stolen = await signInAgain(ada.memberId)
  const bob = await signIn('viewer')
  const end = (session_id: string, member_id = ada.memberId) =>
    send(deleteMemberSession, { params: { member_id, session_id }, credential: ada.token })
  expect((await end(stolen.id)).status).toBe(200)
  await expect.poll(() => statusOf(stolen.token), { timeout: 20_000 }).toBe(401)
  expect(await statusOf(ada.token)).toBe(200)
  for (const id of [stolen.id, bob.sessionId, 'ses_none']) {
    const { status, body } = await end(id)
    expect([status, body.error.code]).toEqual([404, 'session_not_found'])
  }
  expect((await end(bob.sessionId, bob.memberId)).status).toBe(403)
  expect(await statusOf(bob.token)).toBe(200)
})

test('403: what is about another member needs the permission, with a key as well', async () => {
  const { signIn, send } = await start()
  const ada = await signIn('viewer')
  const params = { member_id: ada.memberId }
  const codes = async (credential: string) => {
    const read = await send(listMemberSessions, { params, credential })
    const ended = await send(deleteMemberSessions, { params, credential })
    return [read.status, ended.status]
  }
  expect(await codes((await signIn('developer')).token)).toEqual([403, 403])
  expect(await codes((await signIn('auditor')).token)).toEqual([200, 403])
  expect(await codes((await signIn('admin')).token)).toEqual([200, 200])
  const { status, body } = await send(listMemberSessions, { params: { member_id: 'mem_none' } })
  expect([status, body.error.code]).toEqual([404, 'member_not_found'])
})

test('403: only owners, and they themselves, end the sessions of an owner', async () => {
  const { signIn, send, statusOf, organization } = await start()
  const owner = await signIn('owner')
  const end = (credential = organization.adminKey) =>
    send(deleteMemberSessions, { params: { member_id: owner.memberId }, credential })
  const admin = await signIn('admin')
  for (const refused of [await end(admin.token), await end()]) {
    expect([refused.status, refused.body.error.code]).toEqual([403, 'permission_denied'])
  }
  expect(await statusOf(owner.token)).toBe(200)
  const second = await signIn('owner')
  expect((await end(second.token)).status).toBe(200)
  expect((await end(second.token)).status).toBe(200)
  await expect.poll(() => statusOf(owner.token), { timeout: 20_000 }).toBe(401)
})

test('each session that ends is an event, and a repeated request ends nothing twice', async () => {
  const { signIn, signInAgain, send } = await start()
  const ada = await signIn('viewer')
  const other = await signInAgain(ada.memberId)
  const admin = await signIn('admin')
  const headers = { 'idempotency-key': 'once' }
  const sent = { params: { member_id: ada.memberId }, credential: admin.token, headers }
  expect((await send(deleteMemberSessions, sent)).status).toBe(200)
  const later = await signInAgain(ada.memberId)
  const again = await send(deleteMemberSessions, sent)
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([200, 'true'])
  const { body } = await send(listAuditEvents, { query: { limit: '100' } })
  const ended = listAuditEvents.response.parse(body).data.filter(({ action }) => action === 'ended')
  expect(ended.map(({ actor }) => actor)).toEqual([admin.memberId, admin.memberId])
  const text = JSON.stringify(ended)
  for (const id of [ada.sessionId, other.id]) expect(text).toContain(id)
  expect(text).not.toContain(later.id)
  for (const { token } of [ada, other, admin, later]) expect(text).not.toContain(token)
})

test('a member who signs in a thousand times has as many open sessions as ever', async () => {
  const { signIn, signInAgain, listOf } = await start()
  const ada = await signIn('viewer')
  for (let round = 0; round < 125; round++) {
    await Promise.all(Array.from({ length: 8 }, () => signInAgain(ada.memberId)))
  }
  expect(await listOf(ada.memberId)).toHaveLength(sessionsMax)
})
