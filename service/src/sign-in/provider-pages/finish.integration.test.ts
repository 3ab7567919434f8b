import { expect, test } from 'vitest'

import { setStatus } from '#access/manage-organizations.ts'
import { sealFlow } from '#sign-in/oidc/flow-cookie.ts'
import { problemIn, startProviderApi } from '#sign-in/testing/provider-api.ts'
import { openBrowser, publicUrl } from '#testing/browser.ts'

const ada = { email: 'ada@example.com', email_verified: true, name: 'Ada', groups: ['staff'] }
const bob = { email: 'bob@example.com', email_verified: true, name: 'Bob', groups: [] }
const staff = { group: 'staff', role: 'developer' }
const cookie = '__Host-gatehouse'
const flowCookie = '__Host-gatehouse-sign-in'

const start = (options: Parameters<typeof startProviderApi>[0] = {}) =>
  startProviderApi({ accounts: { ada, bob }, mappings: [staff], ...options })

test('an account with a mapping becomes a member, signs in, and is shown what the provider says', async () => {
  const api = await start()
  const { page, browser } = await api.signIn('ada')
  expect(page.status).toBe(200)
  expect(page.text).toContain('<meta http-equiv="refresh" content="0;url=/auth/session"')
  expect(browser.jar.get(cookie)).toMatch(/^gate_ses_/)
  expect(browser.jar.has(flowCookie)).toBe(false)
  expect((await browser.get('/auth/session')).text).toContain('Ada (ada@example.com)')
  expect(await api.members()).toEqual([
    { email: 'ada@example.com', role: 'developer', role_source: 'group staff', status: 'active' },
  ])
  expect(await api.actions()).toEqual(
    expect.arrayContaining(['member created by gatehouse', 'session signed_in by person']),
  )
  const tokens = await api.db.selectFrom('provider_session').selectAll().executeTakeFirstOrThrow()
  expect(tokens.refresh_token).not.toBeNull()
  expect(tokens.id_token?.toString('latin1')).not.toContain('eyJ')
  const again = await api.signIn('ada')
  expect(again.page.status).toBe(200)
  expect(await api.members()).toHaveLength(1)
})

test('the sign-in page offers the providers as links, and goes on where it was meant to', async () => {
  const api = await start()
  const browser = openBrowser(api.app)
  expect((await browser.get('/auth/sign_in?return_to=/console/keys')).text).toContain(
    'href="/auth/corp?return_to=%2Fconsole%2Fkeys"',
  )
  expect(JSON.parse((await browser.get('/auth/providers')).text)).toMatchObject({
    data: [{ id: 'corp', name: 'The corp', url: '/auth/corp' }],
  })
  const { page } = await api.signIn('ada', { browser, path: '/auth/corp?return_to=/console/keys' })
  expect(page.text).toContain('content="0;url=/console/keys"')
})

test.each([
  'https://evil.example',
  '//evil.example',
  '/\\evil.example',
  '/auth/../../evil',
  'javascript:alert(1)',
  '/auth/session%0d%0aset-cookie:a=b',
])('a link that would end the sign-in at %j is refused', async (address) => {
  const api = await start()
  const begun = await openBrowser(api.app).get(
    `/auth/corp?return_to=${encodeURIComponent(address)}`,
  )
  expect([begun.status, problemIn(begun.text)]).toEqual([
    400,
    'The link leads to no page of this gateway. Open the sign-in page itself.',
  ])
  expect(begun.headers.location).toBeUndefined()
})

test('an answer with another state, and one in another browser, are refused', async () => {
  const api = await start()
  const { browser, answer } = await api.begin('ada')
  const other = openBrowser(api.app)
  const path = answer.pathname + answer.search
  const stolen = await other.get(path)
  expect(problemIn(stolen.text)).toContain('was not started in this browser')
  answer.searchParams.set('state', 'another')
  const wrong = await browser.get(answer.pathname + answer.search)
  expect([wrong.status, problemIn(wrong.text)]).toEqual([
    400,
    'This answer does not belong to the sign-in that this browser has started last. Close other sign-in tabs, and start again.',
  ])
  expect(browser.jar.has(cookie) || other.jar.has(cookie)).toBe(false)
})

test('of two callbacks at once one signs in, and the other says so', async () => {
  const api = await start()
  const { browser, path } = await api.begin('ada')
  const jar = new Map(browser.jar)
  const both = await Promise.all(
    Array.from({ length: 2 }, () => {
      const each = openBrowser(api.app)
      for (const [name, value] of jar) each.jar.set(name, value)
      return each.get(path)
    }),
  )
  expect(new Set(both.map(({ status }) => status))).toEqual(new Set([200, 409]))
  expect(both.map(({ text }) => problemIn(text)).find(Boolean)).toBe(
    'This sign-in has been completed already. If you are not signed in, start again.',
  )
  const sessions = await api.db.selectFrom('session').select('id').execute()
  expect(sessions).toHaveLength(1)
})

test('a flow that has lasted for more than ten minutes, one of another nonce, and a forged one, are refused', async () => {
  const api = await start()
  const nowMs = Date.now()
  const attempt = async (change: object) => {
    const { browser, answer, path } = await api.begin('ada')
    const flow = {
      provider: 'corp',
      state: answer.searchParams.get('state') ?? '',
      nonce: 'another',
      verifier: 'a'.repeat(43),
      returnTo: '/auth/session',
      organizationId: null,
      invitation: null,
      startedAtMs: nowMs,
      ...change,
    }
    browser.jar.set(flowCookie, sealFlow(flow, api.secretBox))
    return problemIn((await browser.get(path)).text)
  }
  expect(await attempt({ startedAtMs: nowMs - 10 * 60_000 })).toContain('more than 10 minutes ago')
  expect(await attempt({})).toContain('The provider did not accept its own answer')
  const { browser, path } = await api.begin('ada')
  browser.jar.set(flowCookie, Buffer.from('{"provider":"corp"}').toString('base64url'))
  expect(problemIn((await browser.get(path)).text)).toContain('was not started in this browser')
})

test('an answer of one of two providers is refused at the other', async () => {
  const api = await start({ others: ['partner'] })
  const { browser, answer } = await api.begin('ada')
  const mixed = await browser.get(`/auth/partner/callback${answer.search}`)
  expect([mixed.status, problemIn(mixed.text)]).toEqual([
    400,
    'The answer did not come from the provider that was asked. Start again; if it comes again, tell the operator of this gateway.',
  ])
  const second = await api.begin('ada')
  const partner = api.doubles.get('partner')
  second.answer.searchParams.set('iss', partner?.issuer ?? '')
  const other = await second.browser.get(second.answer.pathname + second.answer.search)
  expect(problemIn(other.text)).toContain('did not come from the provider that was asked')
})

test('an account without a mapping does not get in, and a refusal is an event', async () => {
  const api = await start()
  const { page, browser } = await api.signIn('bob')
  expect([page.status, problemIn(page.text)]).toEqual([
    403,
    'Your account has no role here. Ask an administrator for an invitation, or to be added to a group that has a role.',
  ])
  expect(browser.jar.has(cookie)).toBe(false)
  expect(await api.members()).toEqual([])
  expect(await api.actions()).toContain('session sign_in_refused by gatehouse')
})

test('a file that creates no members lets only the invited in, with the role of the invitation', async () => {
  const api = await start({ createMembers: false })
  const { page } = await api.signIn('ada')
  expect(problemIn(page.text)).toContain('only invited persons become members')
  await api.db
    .insertInto('member')
    .values({
      organization_id: api.organizationId,
      id: 'mem_000000000000000000000001',
      email: 'ada@example.com',
      name: 'Ada',
      role: 'auditor',
      status: 'invited',
      created_at: new Date(),
    })
    .execute()
  expect((await api.signIn('ada')).page.status).toBe(200)
  expect(await api.members()).toMatchObject([
    { role: 'auditor', role_source: 'assigned', status: 'active' },
  ])
})

test('an address that is not verified makes no member, and gets no domain', async () => {
  const accounts = {
    ada: { ...ada, email_verified: false },
    eve: { ...ada, groups: [], email_verified: false },
  }
  const api = await start({ accounts, mappings: [staff, { domain: 'example.com', role: 'owner' }] })
  for (const account of ['ada', 'eve']) {
    const { page } = await api.signIn(account)
    expect([page.status, problemIn(page.text)]).toEqual([
      403,
      'The provider has not verified your email address. Verify it there, or ask the operator which claim says that it is verified.',
    ])
  }
  expect(await api.members()).toEqual([])
})

test('the domain of another organization gives nothing: neither in the address nor in the claim', async () => {
  const accounts = {
    eve: { email: 'eve@example.com.evil.example', email_verified: true },
    private: { email: 'old@example.com', email_verified: true },
    other: { email: 'old@example.com', email_verified: true, hd: 'evil.example' },
    own: { email: 'new@example.com', email_verified: true, hd: 'example.com' },
  }
  const claims = { hosted_domain: 'hd' } // as at Google, which sends no groups
  const api = await start({
    accounts,
    claims,
    mappings: [{ domain: 'example.com', role: 'viewer' }],
  })
  for (const account of ['eve', 'private', 'other']) {
    expect((await api.signIn(account)).page.status).toBe(403)
  }
  expect((await api.signIn('own')).page.status).toBe(200)
  expect(await api.members()).toMatchObject([{ email: 'new@example.com', role: 'viewer' }])
})

test('an account whose 250 groups were left out is told to use app roles', async () => {
  const overage = {
    _claim_names: { groups: 'src1' },
    _claim_sources: { src1: { endpoint: 'https://graph.example' } },
  }
  const accounts = {
    many: {
      ...ada,
      groups: Array.from({ length: 250 }, (_, index) => `g${index}`).concat('staff'),
    },
    over: { ...bob, groups: undefined, ...overage },
    role: {
      ...bob,
      email: 'role@example.com',
      groups: undefined,
      ...overage,
      roles: ['Gatehouse.Viewer'],
    },
  }
  const api = await start({
    accounts,
    mappings: [staff, { app_role: 'Gatehouse.Viewer', role: 'viewer' }],
  })
  expect((await api.signIn('many')).page.status).toBe(200)
  const { page } = await api.signIn('over')
  expect([page.status, problemIn(page.text)]).toEqual([
    403,
    'Your account is in more groups than the provider sends. Ask the operator to map app roles of the provider instead of groups.',
  ])
  expect((await api.signIn('role')).page.status).toBe(200)
})

test('a provider that is away, or refuses, is named as the cause; nothing of its answer is shown', async () => {
  const api = await start()
  const { browser, path } = await api.begin('ada')
  api.double.state.isAway = true
  const away = await browser.get(path)
  expect([away.status, problemIn(away.text)]).toEqual([
    503,
    'The provider does not answer at the moment. Try again in a minute, or use another way to sign in.',
  ])
  api.double.state.isAway = false
  const { page } = await api.signIn('refused')
  expect([page.status, problemIn(page.text)]).toEqual([
    403,
    'The provider did not let you sign in. Start again, or ask its administrator for access.',
  ])
  expect(page.text).not.toContain('not you')
})

test.each([
  [55_000, 200],
  [-55_000, 200],
  [125_000, 502],
  [-125_000, 502],
])('with clocks %d ms apart: %d', async (apartMs, status) => {
  const api = await start({ now: () => new Date(Date.now() + apartMs) })
  const { page } = await api.signIn('ada')
  expect(page.status).toBe(status)
  if (status === 502) expect(problemIn(page.text)).toContain('more than 60 seconds apart')
})

test('a suspended organization and a suspended member do not get in', async () => {
  const api = await start()
  await api.signIn('ada')
  await api.db.updateTable('member').set({ status: 'suspended' }).execute()
  expect(problemIn((await api.signIn('ada')).page.text)).toContain('Your membership is suspended')
  await setStatus(api.organizationId, 'suspended', api.house)
  expect(problemIn((await api.signIn('ada')).page.text)).toContain('The organization is suspended')
})

test('an unknown provider and a gateway without sign-in have no such page', async () => {
  const api = await start()
  const unknown = await openBrowser(api.app).get('/auth/other')
  expect([unknown.status, problemIn(unknown.text)]).toEqual([
    404,
    'This gateway has no sign-in with this name. Use a link of its sign-in page.',
  ])
  expect(new URL(publicUrl).protocol).toBe('https:')
})
