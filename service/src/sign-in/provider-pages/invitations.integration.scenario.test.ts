import {
  createMember,
  createMemberInvitation,
  listMembers,
  retrieveMember,
  updateMember,
} from '@gatehouse/contract/members/member'
import { goThrough } from '@gatehouse/tools/testing/provider-double'
import { expect, test } from 'vitest'

import { problemIn, startProviderApi } from '#sign-in/testing/provider-api.ts'
import { openBrowser } from '#testing/browser.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

const dayMs = 24 * 60 * 60_000
const account = (email: string, more: object = {}) => ({
  email,
  email_verified: true,
  name: email.split('@')[0] ?? '',
  groups: [],
  ...more,
})
const accounts = {
  ada: account('ada@example.com'),
  bob: account('bob@example.com'),
  doubtful: account('ada@example.com', { email_verified: false }),
  staff: account('carl@example.com', { groups: ['staff'] }),
}
const staff = { group: 'staff', role: 'developer' }

type Invited = { id: string; invitation_url: string; invitation_expires_at: number }

async function start(options: Parameters<typeof startProviderApi>[0] = {}) {
  const api = await startProviderApi({ accounts, mappings: [staff], ...options })
  const invite = async (email = 'ada@example.com') => {
    const { body } = await api.send(createMember, { body: { email, role: 'viewer' } })
    return body as unknown as Invited
  }
  const open = (url: string, more: Record<string, string> = {}, browser = openBrowser(api.app)) =>
    browser.post('/auth/invitation', { form: { token: url.split('#')[1] ?? '', ...more } })
  /** Opens the invitation and signs in with an account, as a browser does. */
  const accept = async (url: string, who: string) => {
    const browser = openBrowser(api.app)
    const sent = await open(url, { provider: 'corp' }, browser)
    if (sent.status !== 200) return { browser, page: sent }
    const [, address = ''] = /content="0;url=([^"]+)"/.exec(sent.text) ?? []
    api.double.state.current = who
    const answer = await goThrough(api.double, new URL(address.replaceAll('&amp;', '&')))
    return { browser, page: await browser.get(answer.pathname + answer.search) }
  }
  return { ...api, invite, open, accept }
}

test('an invitation leads to the provider, and activates the member whose address the provider has verified', async () => {
  const api = await start()
  const { invitation_url: url } = await api.invite()
  expect(url).toMatch(/^https:\/\/gateway\.example\.com\/auth\/invitation#gate_inv_\w{49}$/)
  const shown = await api.open(url)
  expect([shown.status, shown.setCookies]).toEqual([200, []])
  for (const text of ['Example Ltd', 'ada@example.com', 'Sign in with The corp']) {
    expect(shown.text).toContain(text)
  }
  const { page, browser } = await api.accept(url, 'ada')
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('You are signed in')])
  expect((await browser.get('/auth/session')).text).toContain('ada@example.com')
  expect(await api.members()).toMatchObject([{ role: 'viewer', status: 'active' }])
  const again = await api.open(url)
  expect([again.status, problemIn(again.text)]).toEqual([
    403,
    expect.stringContaining('was accepted already'),
  ])
})

test.each([
  ['bob', 'for another address'],
  ['doubtful', 'has not verified your email address'],
  ['staff', 'for another address'],
])('403: the account %s is %s, and nothing has changed', async (who, text) => {
  const api = await start()
  const { invitation_url: url } = await api.invite()
  const { page, browser } = await api.accept(url, who)
  expect([page.status, problemIn(page.text)]).toEqual([403, expect.stringContaining(text)])
  expect(browser.jar.has('__Host-gatehouse')).toBe(false)
  expect(await api.members()).toMatchObject([{ status: 'invited' }])
  expect((await api.accept(url, 'ada')).page.status, 'the invitation is still open').toBe(200)
})

test('403: an account that is another member already, whatever its address is now', async () => {
  const api = await start()
  await api.invite('bob@example.com')
  await api.signIn('bob')
  const { invitation_url: url } = await api.invite('ada@example.com')
  api.double.accounts.set('bob', account('ada@example.com'))
  const { page } = await api.accept(url, 'bob')
  expect([page.status, problemIn(page.text)]).toEqual([
    403,
    expect.stringContaining('another account'),
  ])
})

test('two who accept at the same time: one member is active, and the other is refused', async () => {
  const api = await start()
  const { invitation_url: url } = await api.invite()
  const both = await Promise.all([api.accept(url, 'ada'), api.accept(url, 'ada')])
  const statuses = both.map(({ page }) => page.status)
  expect(statuses.toSorted((one, other) => one - other)).toEqual([200, 403])
})

test('an invitation ends after seven days; a new one replaces it, and needs a member who is invited', async () => {
  const clock = createTestClock()
  const api = await createTestApi({
    now: clock.now,
    environment: { PUBLIC_URL: 'https://gateway.example.com' },
  })
  const open = (url: string) =>
    openBrowser(api.app).post('/auth/invitation', { form: { token: url.split('#')[1] ?? '' } })
  const body = { email: 'ada@example.com', role: 'viewer' }
  const first = (await api.send(createMember, { body })).body as unknown as Invited
  expect(first.invitation_expires_at).toBe(Math.floor((clock.now().getTime() + 7 * dayMs) / 1000))
  expect((await open(first.invitation_url)).text).toContain('has set up no provider')
  clock.pass(7 * dayMs)
  expect((await open(first.invitation_url)).status).toBe(403)
  const params = { member_id: first.id }
  const again = await api.send(createMemberInvitation, { params })
  const second = again.body as unknown as Invited
  expect([again.status, second.invitation_url]).not.toEqual([201, first.invitation_url])
  expect((await open(second.invitation_url)).status).toBe(200)
  await api.send(updateMember, { params, body: { status: 'suspended' } })
  expect((await open(second.invitation_url)).status).toBe(403)
  const refused = await api.send(createMemberInvitation, { params })
  expect([refused.status, refused.body.error.code]).toEqual([409, 'member_not_invited'])
})

test('the link is in the 201 and in its repetition, and in no later answer', async () => {
  const api = await start()
  const headers = { 'idempotency-key': 'invite-ada' }
  const body = { email: 'ada@example.com', role: 'viewer' }
  const send = () => api.send(createMember, { body, headers })
  const [made, repeated] = [await send(), await send()]
  expect(repeated.headers['idempotent-replayed']).toBe('true')
  expect(repeated.body).toEqual(made.body)
  const secret = (made.body as unknown as Invited).invitation_url.split('#')[1] ?? ''
  const read = await api.send(retrieveMember, { params: { member_id: made.body.id } })
  const listed = await api.send(listMembers)
  const stored = await Promise.all([
    api.db.selectFrom('event').selectAll().execute(),
    api.db.selectFrom('member_link').selectAll().execute(),
    api.db.selectFrom('idempotency_key').select('answer').execute(),
  ])
  const payloads = stored[0].map(({ payload }) => payload?.toString() ?? '')
  for (const text of [read.body, listed.body, ...stored, payloads].map((each) =>
    JSON.stringify(each),
  )) {
    expect(text).not.toContain(secret)
    expect(text).not.toContain('invitation_url')
  }
})

test('403: who may not give the role gets no link for its member, owners least of all', async () => {
  const api = await start()
  const { organizationId } = api.organization
  const signIn = async (role: 'owner' | 'admin') =>
    (await createMemberSession(api.house, { organizationId, role })).token
  const [owner, admin] = [await signIn('owner'), await signIn('admin')]
  const body = { email: 'eve@example.com', role: 'owner' }
  const { id } = (await api.send(createMember, { credential: owner, body })).body
  const renew = (credential: string) =>
    api.send(createMemberInvitation, { credential, params: { member_id: id } })
  expect((await renew(admin)).status).toBe(403)
  expect((await renew(owner)).status).toBe(201)
})
