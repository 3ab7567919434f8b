import { updateMember } from '@gatehouse/contract/members/member'
import type { Account } from '@gatehouse/tools/testing/provider-double'
import { expect, test } from 'vitest'

import { createOrganization, setStatus } from '#access/manage-organizations.ts'
import { compareSessions } from '#sign-in/members/compare-sessions.ts'
import { problemIn, startProviderApi } from '#sign-in/testing/provider-api.ts'
import { type Browser, csrfIn } from '#testing/browser.ts'

const ada = { email: 'ada@example.com', email_verified: true, name: 'Ada', groups: ['staff'] }
const bob = { email: 'bob@example.com', email_verified: true, name: 'Bob', groups: ['staff'] }
const mappings = [
  { group: 'staff', role: 'developer' },
  { group: 'leads', role: 'admin' },
  { group: 'owners', role: 'owner' },
]
const quarterMs = 15 * 60_000
const turn = { rest: async () => {}, signal: new AbortController().signal }

async function start(options: Parameters<typeof startProviderApi>[0] = {}) {
  const api = await startProviderApi({ accounts: { ada, bob }, mappings, ...options })
  return {
    ...api,
    /** What workers do when a quarter of an hour has passed. */
    async compareLater(workers = 1) {
      const checked_at = new Date(Date.now() - quarterMs - 1000)
      await api.db.updateTable('provider_session').set({ checked_at }).execute()
      await Promise.all(
        Array.from({ length: workers }, () => compareSessions(api.house.signIn.deps, turn)),
      )
    },
    change(account: string, changes: Account) {
      api.double.accounts.set(account, { ...api.double.accounts.get(account), ...changes })
    },
  }
}

/** A part of the provider that its types leave out. */
type LogoutClient = { backchannelLogout(subject: string, session: string): Promise<void> }

const statusOf = async (browser: Browser) => (await browser.get('/auth/session')).status
async function expectSignedOut(browser: Browser) {
  await expect.poll(() => statusOf(browser), { timeout: 20_000 }).toBe(303)
}

test('another group gives another role at the next sign-in, and the event names it', async () => {
  const api = await start()
  await api.signIn('ada')
  api.change('ada', { groups: ['staff', 'leads'] })
  await api.signIn('ada')
  expect(await api.members()).toMatchObject([{ role: 'admin', role_source: 'group leads' }])
  expect(await api.actions()).toContain('member updated by gatehouse')
})

test('a group that was removed suspends the member and ends every session, and gives it back when it returns', async () => {
  const api = await start()
  const first = await api.signIn('ada')
  const second = await api.signIn('ada')
  expect(await statusOf(first.browser)).toBe(200)
  api.change('ada', { groups: [] })
  await api.compareLater()
  expect(await api.members()).toMatchObject([{ status: 'suspended' }])
  await expectSignedOut(first.browser)
  await expectSignedOut(second.browser)
  const { page } = await api.signIn('ada')
  expect([page.status, problemIn(page.text)]).toEqual([
    403,
    'Your account has lost the group or role that let you in. Ask an administrator to give it back.',
  ])
  api.change('ada', { groups: ['staff'] })
  expect((await api.signIn('ada')).page.status).toBe(200)
  expect(await api.members()).toMatchObject([{ role: 'developer', status: 'active' }])
  expect(await api.actions()).toEqual(
    expect.arrayContaining(['member suspended by gatehouse', 'member reinstated by gatehouse']),
  )
})

test('a role is compared every fifteen minutes, by one of several workers, and each token is used once', async () => {
  const api = await start()
  const { browser } = await api.signIn('ada')
  api.change('ada', { groups: ['leads'] })
  await api.compareLater(4)
  expect(await api.members()).toMatchObject([{ role: 'admin', status: 'active' }])
  await api.compareLater(4)
  expect(await statusOf(browser)).toBe(200)
  const before = api.double.state.requests
  await compareSessions(api.house.signIn.deps, turn)
  expect(api.double.state.requests).toBe(before)
})

test('an account that the provider no longer has ends the session; a provider that is away does not', async () => {
  const api = await start()
  const { browser } = await api.signIn('ada')
  api.double.state.isAway = true
  await api.compareLater()
  expect(await statusOf(browser)).toBe(200)
  api.double.state.isAway = false
  api.double.accounts.delete('ada')
  await api.compareLater()
  await expectSignedOut(browser)
  expect(await api.members()).toMatchObject([{ status: 'active' }])
})

test('groups that are left out later end the session, and leave the member as it is', async () => {
  const api = await start()
  const { browser } = await api.signIn('ada')
  api.change('ada', { groups: undefined, hasgroups: true })
  await api.compareLater()
  await expectSignedOut(browser)
  expect(await api.members()).toMatchObject([{ role: 'developer', status: 'active' }])
})

test('the last owner is kept, once with an event; with another owner the mapping decides', async () => {
  const owner = { ...ada, groups: ['owners'] }
  const api = await start({ accounts: { ada: owner, bob } })
  const { browser } = await api.signIn('ada')
  api.change('ada', { groups: ['staff'] })
  await api.compareLater()
  await api.compareLater()
  expect(await statusOf(browser)).toBe(200)
  expect(await api.members()).toMatchObject([{ role: 'owner' }])
  expect(
    (await api.actions()).filter((action) => action === 'member kept by gatehouse'),
  ).toHaveLength(1)
  api.change('bob', { groups: ['owners'] })
  await api.signIn('bob')
  await api.compareLater()
  expect(await api.members()).toMatchObject([{ role: 'developer' }, { role: 'owner' }])
})

test('two owners who lose their groups at the same moment leave one', async () => {
  const owners = { ada: { ...ada, groups: ['owners'] }, bob: { ...bob, groups: ['owners'] } }
  const api = await start({ accounts: owners })
  await api.signIn('ada')
  await api.signIn('bob')
  for (const account of ['ada', 'bob']) api.change(account, { groups: [] })
  await api.compareLater(2)
  const members = await api.members()
  expect(
    members.filter(({ role, status }) => role === 'owner' && status === 'active'),
  ).toHaveLength(1)
})

test('a role that an administrator has assigned stays, and needs no group', async () => {
  const api = await start()
  const { browser } = await api.signIn('ada')
  await api.db.updateTable('member').set({ role: 'auditor', role_source: 'assigned' }).execute()
  api.change('ada', { groups: ['leads'] })
  await api.compareLater()
  api.change('ada', { groups: [] })
  await api.compareLater()
  expect(await statusOf(browser)).toBe(200)
  expect(await api.members()).toMatchObject([{ role: 'auditor', role_source: 'assigned' }])
})

test('an address that has become another account does not take over its member', async () => {
  const api = await start()
  await api.signIn('ada')
  api.change('ada', { email: 'ada.new@example.com' })
  api.change('bob', { email: 'ada@example.com', groups: ['leads'] })
  const before = await api.signIn('bob')
  expect([before.page.status, problemIn(before.page.text)]).toEqual([
    403,
    'Your address belongs to a member who signs in with another account. Ask an administrator to remove that member first.',
  ])
  await api.signIn('ada')
  expect((await api.signIn('bob')).page.status).toBe(200)
  expect(await api.members()).toMatchObject([
    { email: 'ada.new@example.com', role: 'developer' },
    { email: 'ada@example.com', role: 'admin' },
  ])
})

test('another provider that gives out the address of a member does not get its role', async () => {
  const ofPartner = { provider: 'partner', group: 'guests', role: 'viewer' }
  const api = await start({ others: ['partner'], mappings: [...mappings, ofPartner] })
  await api.signIn('ada')
  const { page } = await api.signIn('ada', { path: '/auth/partner' })
  expect(problemIn(page.text)).toContain('signs in with another account')
})

test('an account with several organizations chooses, and each is a session of its own', async () => {
  const api = await start()
  const other = await createOrganization('Other Ltd', api.house)
  const organization = other.organizationId
  api.write({ mappings: [...mappings, { group: 'staff', role: 'viewer', organization }] })
  await expect
    .poll(() => api.house.signIn.deps.settings().providers[0]?.mappings.length, { timeout: 20_000 })
    .toBe(4)
  const { page, browser } = await api.signIn('ada')
  expect(page.text).toContain('Choose an organization')
  expect(page.text).toContain('Other Ltd')
  expect(await api.members()).toEqual([])
  const path = `/auth/corp?organization=${organization}`
  expect((await api.signIn('ada', { browser, path })).page.status).toBe(200)
  expect((await browser.get('/auth/session')).text).toContain(organization)
  expect(await api.members(organization)).toMatchObject([{ role: 'viewer' }])
  expect(await api.members()).toEqual([])
  const foreign = await api.signIn('ada', { path: '/auth/corp?organization=org_foreign' })
  expect(foreign.page.status).toBe(403)
})

test('signing out ends the session here and leads to the provider, which ends its own', async () => {
  const api = await start()
  const { browser } = await api.signIn('ada')
  const csrf = csrfIn((await browser.get('/auth/session')).text)
  const out = await browser.post('/auth/sign_out', { form: { csrf } })
  const [, address = ''] = /content="0;url=([^"]+)"/.exec(out.text) ?? []
  const url = new URL(address.replaceAll('&amp;', '&'))
  expect(url.origin + url.pathname).toBe(`${api.double.issuer}/session/end`)
  expect(url.searchParams.get('post_logout_redirect_uri')).toMatch(/\/auth\/sign_in$/)
  expect(url.searchParams.get('id_token_hint')).toMatch(/^eyJ/)
  expect(await statusOf(browser)).toBe(303)
})

test('a back-channel logout ends the sessions of that sign-in, once, and no others', async () => {
  const api = await start()
  const first = await api.signIn('ada')
  const second = await api.signIn('ada')
  const others = await api.signIn('bob')
  const [row] = await api.db
    .selectFrom('provider_session')
    .select(['provider_session', 'session_id'])
    .orderBy('session_id')
    .execute()
  expect(await statusOf(first.browser)).toBe(200)
  const client = (await api.double.provider.Client.find('gatehouse')) as unknown as LogoutClient
  await client.backchannelLogout('ada', row?.provider_session ?? '')
  expect(api.delivered.map(({ status }) => status)).toEqual([200])
  await expectSignedOut(first.browser)
  expect(await statusOf(second.browser)).toBe(200)
  expect(await statusOf(others.browser)).toBe(200)
  const { url, form } = api.delivered[0]!
  expect((await api.deliver(url, form)).status, 'the same token again').toBe(400)
  expect((await api.deliver(url, 'logout_token=nonsense')).status).toBe(400)
  expect((await api.deliver(url, 'a=b')).status).toBe(400)
  expect(await statusOf(second.browser)).toBe(200)
  expect(await api.actions()).toContain('session ended by gatehouse')
})

test('a session of a suspended organization does not keep its browser out of another organization', async () => {
  const api = await start()
  const { browser } = await api.signIn('ada')
  const other = await createOrganization('Other Ltd', api.house)
  api.write({ mappings: [{ group: 'staff', role: 'viewer', organization: other.organizationId }] })
  await expect
    .poll(() => api.house.signIn.deps.settings().providers[0]?.mappings.length, { timeout: 20_000 })
    .toBe(1)
  await setStatus(api.organizationId, 'suspended', api.house)
  await expect.poll(() => statusOf(browser), { timeout: 20_000 }).toBe(403)
  const path = `/auth/corp?organization=${other.organizationId}`
  expect((await api.signIn('ada', { browser, path })).page.status).toBe(200)
  expect(await statusOf(browser)).toBe(200)
})

test.each([
  ['who was suspended by the claims before', []],
  ['who was reinstated in between', ['active']],
] as const)(
  'a group that returns does not end a suspension by an administrator: %s',
  async (_, before) => {
    const api = await start()
    await api.signIn('ada')
    const { id } = await api.db.selectFrom('member').select('id').executeTakeFirstOrThrow()
    api.change('ada', { groups: [] })
    await api.compareLater()
    for (const status of [...before, 'suspended'] as const) {
      const answer = await api.send(updateMember, { params: { member_id: id }, body: { status } })
      expect(answer.status).toBe(200)
    }
    api.change('ada', { groups: ['staff'] })
    const { page } = await api.signIn('ada')
    expect([page.status, problemIn(page.text)]).toEqual([
      403,
      'Your membership is suspended. Ask an administrator of your organization to reinstate it.',
    ])
  },
)
