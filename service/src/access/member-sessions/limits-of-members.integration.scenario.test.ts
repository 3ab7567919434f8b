import { listAdminApiKeys } from '@gatehouse/contract/api-key'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { listMembers } from '@gatehouse/contract/members/member'
import { listProjects } from '@gatehouse/contract/project'
import type { Role } from '@gatehouse/contract/role'
import { expect, test } from 'vitest'

import { type SessionOwner } from '#access/sessions/session-store.ts'
import { startSession } from '#access/sessions/start-session.ts'
import { transact } from '#platform/transaction.ts'
import { csrfIn, openBrowser, publicUrl } from '#testing/browser.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

// The limit of requests per minute counts what a member sends, from wherever the member has signed in.

const perMinute = 8

async function start() {
  const environment = {
    PUBLIC_URL: publicUrl,
    ADMIN_REQUESTS_PER_MINUTE: String(perMinute),
    ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION: '100000',
  }
  // The clock stands still, so that no minute passes.
  const api = await createTestApi({ environment, now: createTestClock().now })
  const { house, organization, send } = api
  const { organizationId } = organization
  const startFor = async (owner: SessionOwner) => {
    const { sessionMaxMs } = house.access
    const wanted = { owner, form: 'token', method: 'test', requestId: null } as const
    const started = await transact(house.db, (tx) =>
      startSession(tx, { ...wanted, now: house.now() }, { ...house, sessionMaxMs }),
    )
    return started!.token
  }
  const signIn = (role: Role, form: 'browser' | 'token' = 'token') =>
    createMemberSession(house, { organizationId, role, form })
  const statusOf = async (credential: string, endpoint: Endpoint = listProjects, query = {}) =>
    (await send(endpoint, { credential, params: paramsOf(endpoint), query })).status
  return { ...api, organizationId, startFor, signIn, statusOf }
}

const paramsOf = ({ params }: Endpoint) =>
  Object.fromEntries(Object.keys(params?.shape ?? {}).map((name) => [name, 'none_0']))

const all: readonly Endpoint[] = endpoints
const withSessions = all.filter(({ credentials }) => credentials.some((kind) => kind === 'session'))

test('429: every endpoint counts the calls of a member, whichever session they come with', async () => {
  const { signIn, startFor, statusOf, organizationId } = await start()
  const { memberId, token } = await signIn('owner')
  const sessions = [token, await startFor({ organizationId, memberId })]
  const other = (await signIn('owner')).token
  for (let count = 0; count < perMinute; count++) {
    expect(await statusOf(sessions[count % 2]!)).toBe(200)
  }
  const found: [string, number][] = []
  for (const endpoint of withSessions) {
    for (const session of sessions) found.push([endpoint.id, await statusOf(session, endpoint)])
  }
  expect(found.length).toBeGreaterThan(120)
  expect(found.filter(([, status]) => status !== 429)).toEqual([])
  expect(await statusOf(other)).toBe(200)
})

test('429: each page of a list counts', async () => {
  const { signIn, send, statusOf } = await start()
  const { token } = await signIn('owner')
  for (let count = 0; count < 2; count++) await signIn('viewer')
  let after: string | undefined
  for (let count = 0; count < 3; count++) {
    const query = { limit: '1', ...(after !== undefined && { after }) }
    const { status, body } = await send(listMembers, { credential: token, query })
    expect([status, body.data.length]).toEqual([200, 1])
    after = body.last_id ?? undefined
  }
  for (let count = 3; count < perMinute; count++) {
    expect(await statusOf(token, listAdminApiKeys, { limit: '1' })).toBe(200)
  }
  expect(await statusOf(token, listMembers, { limit: '1', after: after ?? '' })).toBe(429)
})

test('429: a call that is refused for lack of a permission, or finds nothing, counts too', async () => {
  const { signIn, statusOf } = await start()
  const { token } = await signIn('developer')
  for (let count = 0; count < perMinute; count++) {
    expect(await statusOf(token, listAdminApiKeys)).toBe(403)
  }
  expect(await statusOf(token)).toBe(429)
})

test('429: sessions that a key has opened count together with the key', async () => {
  const { db, startFor, statusOf, organization, organizationId } = await start()
  const { id: keyId } = await db.selectFrom('api_key').select('id').executeTakeFirstOrThrow()
  const credentials = [organization.adminKey]
  for (let count = 0; count < 2; count++)
    credentials.push(await startFor({ organizationId, keyId }))
  for (let count = 0; count < perMinute; count++) {
    expect(await statusOf(credentials[count % 3]!)).toBe(200)
  }
  for (const credential of credentials) expect(await statusOf(credential)).toBe(429)
})

test('a member whose calls are used up still sees the page of the session, and signs out', async () => {
  const { app, signIn } = await start()
  const { token } = await signIn('viewer', 'browser')
  const browser = openBrowser(app)
  browser.jar.set('__Host-gatehouse', token)
  const csrf = csrfIn((await browser.get('/auth/session')).text)
  for (let count = 0; count < perMinute; count++) {
    expect((await browser.get('/v1/organization/projects')).status).toBe(200)
  }
  expect((await browser.get('/v1/organization/projects')).status).toBe(429)
  expect((await browser.get('/auth/session')).status).toBe(200)
  expect((await browser.post('/auth/sign_out', { form: { csrf } })).status).toBe(303)
  expect(browser.jar.size).toBe(0)
})
