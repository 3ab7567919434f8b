import { randomBytes } from 'node:crypto'

import { listAdminApiKeys } from '@gatehouse/contract/api-key'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { listProjects } from '@gatehouse/contract/project'
import type { Role } from '@gatehouse/contract/role'
import { expect, test } from 'vitest'

import { createFailedAttempts } from '#access/failed-attempts.ts'
import { createLookupCache } from '#access/lookup-cache.ts'
import { setStatus } from '#access/manage-organizations.ts'
import { formatKey } from '#access/secret.ts'
import type { House } from '#assemble.ts'
import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

import { createSessionAuthentication, sessionDependsOn } from './authenticate-session.ts'
import { createSessionSightings } from './session-sightings.ts'
import { endSessionsOf, findSessionByHash, type FoundSession } from './session-store.ts'
import { announceEnds, sessionsMax, startSession } from './start-session.ts'

const minuteMs = 60_000
const by = { id: 'operator', type: 'operator', requestId: null } as const
const address = '192.0.2.1'

async function createSignedIn(role: Role = 'admin') {
  const clock = createTestClock()
  const api = await createTestApi({ now: clock.now })
  const { organizationId } = api.organization
  const session = await createMemberSession(api.house, { organizationId, role })
  const call = async (endpoint: Endpoint = listProjects, credential = session.token) => {
    const { status, body } = await api.send(endpoint, { credential })
    return [status, status === 200 ? undefined : body.error.code]
  }
  return { ...api, clock, organizationId, session, call }
}

/** The authentication alone, on a database that counts the queries it is asked. */
function countQueries(house: House) {
  const asked: string[] = []
  const db: Db = house.db.withPlugin({
    transformQuery: ({ node }) => {
      asked.push(node.kind)
      return node
    },
    transformResult: async ({ result }) => result,
  })
  const sightings = createSessionSightings(db, house.log)
  const bySession = createSessionAuthentication({
    db,
    now: house.now,
    hashKey: house.hashKey,
    cache: createLookupCache<FoundSession>({
      now: house.now,
      outageMs: 0,
      knownFreshMs: 5000,
      dependsOn: sessionDependsOn,
    }),
    guessesByAddress: createFailedAttempts({
      now: house.now,
      steadyNow: house.now,
      countedBy: 'address',
      guessesMax: 10,
      onRefused: () => {},
    }),
    sightings,
    idleMs: 60 * minuteMs,
  })
  const identify = async (text: string) => bySession(listProjects, { text, form: 'token' }, address)
  return { asked, identify, settled: sightings.stop }
}

test('200 for a member whose role has the permission, 403 for one whose role has not', async () => {
  const { call } = await createSignedIn('viewer')
  expect(await call()).toEqual([200, undefined])
  expect(await call(listAdminApiKeys)).toEqual([403, 'permission_denied'])
})

test('a principal says who the member is, and which projects the member belongs to', async () => {
  const { house, organization } = await createSignedIn()
  const { organizationId, projectId } = organization
  const projectRoles = { [projectId]: 'project_admin' } as const
  const email = 'ada@example.com'
  const wanted = { organizationId, role: 'developer', projectRoles, email } as const
  const { memberId, token, sessionId } = await createMemberSession(house, wanted)
  const found = await house.access.authentication.bySession(
    listProjects,
    { text: token, form: 'token' },
    address,
  )
  expect(found).toMatchObject({
    kind: 'session',
    organizationId,
    projectId: null,
    credentialId: memberId,
    permissions: new Set(['projects.read']),
    member: { id: memberId, email, role: 'developer' },
    session: { id: sessionId },
  })
  expect(found.member?.projectRoles).toEqual(new Map([[projectId, 'project_admin']]))
  expect(found.session?.csrfToken).toBeNull()
})

test('401 for an unknown secret, and 429 for an address that tries many', async () => {
  const { call } = await createSignedIn()
  const guess = () => formatKey('gate_ses_', randomBytes(32))
  for (let guesses = 0; guesses < 10; guesses++) {
    expect(await call(listProjects, guess())).toEqual([401, 'invalid_session'])
  }
  expect(await call(listProjects, guess())).toEqual([429, 'rate_limit_exceeded'])
})

test('401 for a session that has lasted eight hours, however much it was used', async () => {
  const { call, clock, house } = await createSignedIn()
  const lastSeen = async () =>
    (await house.db.selectFrom('session').select('last_seen_at').executeTakeFirstOrThrow())
      .last_seen_at
  for (let halfHours = 0; halfHours < 16; halfHours++) {
    expect(await call()).toEqual([200, undefined])
    await expect.poll(lastSeen, { timeout: 20_000 }).toEqual(clock.now())
    clock.pass(30 * minuteMs)
  }
  expect(await call()).toEqual([401, 'invalid_session'])
})

test('401 for a session without a request for an hour', async () => {
  const { call, clock } = await createSignedIn()
  clock.pass(60 * minuteMs - 1)
  expect(await call()).toEqual([200, undefined])
  clock.pass(60 * minuteMs)
  expect(await call()).toEqual([401, 'invalid_session'])
})

test('401 for a session whose secret came in the form of a browser', async () => {
  const { house, organizationId, call } = await createSignedIn()
  const wanted = { organizationId, role: 'owner', form: 'browser' } as const
  const { token } = await createMemberSession(house, wanted)
  expect(await call(listProjects, token)).toEqual([401, 'invalid_session'])
})

test('401 for a suspended member, and 403 for a suspended organization', async () => {
  const { house, organizationId, call } = await createSignedIn()
  const wanted = { organizationId, role: 'owner', status: 'suspended' } as const
  const { token } = await createMemberSession(house, wanted)
  expect(await call(listProjects, token)).toEqual([401, 'invalid_session'])
  await setStatus(organizationId, 'suspended', house)
  expect(await call()).toEqual([403, 'organization_suspended'])
})

test('a session opened with a key has its permissions and ends with it', async () => {
  const { house, organization, send, db } = await createSignedIn()
  const { organizationId } = organization
  const key = await db.selectFrom('api_key').select('id').executeTakeFirstOrThrow()
  const owner = { organizationId, keyId: key.id }
  const start = { owner, form: 'token', method: 'key', requestId: null, now: house.now() } as const
  const { sessionMaxMs } = house.access
  const started = await transact(house.db, (tx) =>
    startSession(tx, start, { ...house, sessionMaxMs }),
  )
  const credential = started!.token
  expect((await send(listAdminApiKeys, { credential })).status).toBe(200)
  await db.updateTable('api_key').set({ revoked_at: house.now() }).execute()
  const { identify } = countQueries(house)
  await expect(identify(credential)).rejects.toMatchObject({ code: 'invalid_session' })
  const again = await transact(house.db, (tx) =>
    startSession(tx, start, { ...house, sessionMaxMs }),
  )
  expect(again, 'a revoked key opens no session').toBeUndefined()
})

test('a member has twenty open sessions at most: the oldest ends', async () => {
  const { house, organizationId, session, clock, call } = await createSignedIn()
  const owner = { organizationId, memberId: session.memberId }
  const { sessionMaxMs } = house.access
  const start = () =>
    transact(house.db, (tx) =>
      startSession(
        tx,
        { owner, form: 'token', method: 'test', requestId: null, now: house.now() },
        { ...house, sessionMaxMs },
      ),
    )
  for (let more = 1; more < sessionsMax; more++) {
    clock.pass(1)
    await start()
  }
  expect(await call()).toEqual([200, undefined])
  clock.pass(1)
  const [newest] = await Promise.all(Array.from({ length: 8 }, start))
  const { identify } = countQueries(house)
  await expect(identify(session.token)).rejects.toMatchObject({ code: 'invalid_session' })
  expect((await identify(newest!.token)).credentialId).toBe(session.memberId)
  const open = await house.db
    .selectFrom('session')
    .select('id')
    .where('member_id', '=', session.memberId)
    .where('ended_at', 'is', null)
    .execute()
  expect(open).toHaveLength(sessionsMax)
})

test('a request costs one query at most, none within five seconds, and one write a minute', async () => {
  const { house, session, clock } = await createSignedIn()
  const { asked, identify, settled } = countQueries(house)
  for (let calls = 0; calls < 100; calls++) await identify(session.token)
  expect(asked).toEqual(['SelectQueryNode'])
  clock.pass(5000)
  await Promise.all(Array.from({ length: 50 }, () => identify(session.token)))
  expect(asked).toEqual(['SelectQueryNode', 'SelectQueryNode'])
  clock.pass(minuteMs)
  for (let calls = 0; calls < 100; calls++) await identify(session.token)
  await settled()
  expect(asked.slice(2)).toEqual(['SelectQueryNode', 'RawNode'])
  const member = await house.db
    .selectFrom('member')
    .select('last_seen_at')
    .where('id', '=', session.memberId)
    .executeTakeFirstOrThrow()
  expect(member.last_seen_at).toEqual(clock.now())
})

test('every process forgets a session that has ended', async () => {
  const { house, organizationId, session, call } = await createSignedIn()
  expect(await call()).toEqual([200, undefined])
  const owner = { organizationId, memberId: session.memberId }
  await transact(house.db, async (tx) => {
    const ended = await endSessionsOf(tx, owner, house.now())
    await announceEnds(tx, ended, { by, action: 'ended' }, house.announce)
  })
  await expect.poll(() => call(), { timeout: 20_000 }).toEqual([401, 'invalid_session'])
})

test('the database holds no secret of a session', async () => {
  const { house, session } = await createSignedIn()
  const hashes = house.hashKey(session.token).map(({ hash }) => hash)
  expect(await findSessionByHash(house.db, hashes)).toMatchObject({ id: session.sessionId })
  const rows = await house.db.selectFrom('session').selectAll().execute()
  expect(JSON.stringify(rows)).not.toContain(session.token)
})
