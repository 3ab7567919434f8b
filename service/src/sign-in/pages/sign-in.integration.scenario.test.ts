import { randomBytes } from 'node:crypto'

import { expect, test } from 'vitest'

import { setStatus } from '#access/manage-organizations.ts'
import { formatKey } from '#access/secret.ts'
import { csrfIn, openBrowser, publicUrl } from '#testing/browser.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'

const cookie = '__Host-gatehouse'
const projects = '/v1/organization/projects'

async function start(environment: Record<string, string> = {}) {
  const api = await createTestApi({ environment: { PUBLIC_URL: publicUrl, ...environment } })
  const signIn = (browser = openBrowser(api.app), key = api.organization.adminKey) =>
    browser.post('/auth/key', { form: { key } })
  return { ...api, browser: openBrowser(api.app), signIn }
}

/** A browser in which a member has signed in, and the token that its pages have. */
async function startSignedIn() {
  const api = await start()
  const { browser, organization, house } = api
  const { organizationId } = organization
  const wanted = { organizationId, role: 'owner', form: 'browser' } as const
  const { token } = await createMemberSession(house, wanted)
  browser.jar.set(cookie, token)
  const csrf = csrfIn((await browser.get('/auth/session')).text)
  const headers = { 'x-gatehouse-csrf': csrf }
  const change = (more: Record<string, string> = {}, without: readonly string[] = []) => {
    const sent = Object.entries({ ...headers, ...more })
    const kept = sent.filter(([name]) => !without.includes(name))
    return browser.post(projects, { body: { name: 'P' }, headers: Object.fromEntries(kept) })
  }
  return { ...api, token, csrf, change }
}

const codeOf = ({ status, text }: { status: number; text: string }) => [
  status,
  status < 300 ? undefined : (JSON.parse(text) as { error: { code: string } }).error.code,
]

test('an administrator key signs in: the cookie is one that only this host and no script can read', async () => {
  const { browser, signIn } = await start()
  expect((await browser.get('/auth/sign_in')).text).toContain('Administrator key')
  const answer = await signIn(browser)
  expect([answer.status, answer.headers.location]).toEqual([303, '/auth/session'])
  expect(answer.setCookies).toHaveLength(1)
  expect(answer.setCookies[0]).toMatch(
    /^__Host-gatehouse=gate_ses_[0-9A-Za-z]{49}; Max-Age=28800; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  expect((await browser.get('/auth/session')).text).toContain('You are signed in')
  expect(codeOf(await browser.get(projects))).toEqual([200, undefined])
})

test('on a loopback address the cookie has another name, because it is not Secure', async () => {
  const { signIn } = await start({ PUBLIC_URL: 'http://127.0.0.1:8080' })
  const { setCookies } = await signIn()
  expect(setCookies[0]).toMatch(
    /^gatehouse=gate_ses_\w+; Max-Age=28800; Path=\/; HttpOnly; SameSite=Lax$/,
  )
})

test.each([
  ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
  ['a sibling subdomain', { 'sec-fetch-site': 'same-site', origin: 'https://wiki.example.com' }],
  ['an old browser on a sibling', { 'sec-fetch-site': '', origin: 'https://wiki.example.com' }],
  ['a typed address', { 'sec-fetch-site': 'none', origin: publicUrl }],
  ['a wrong token', { 'x-gatehouse-csrf': 'x'.repeat(43) }],
  ['a short token', { 'x-gatehouse-csrf': 'x' }],
])('403: a change with the cookie from %s', async (_, headers) => {
  const { change } = await startSignedIn()
  expect(codeOf(await change())).toEqual([201, undefined])
  expect(codeOf(await change(headers))).toEqual([403, 'cross_site_request'])
})

test('403: a change with the cookie and without the token; a GET needs none', async () => {
  const { change, browser } = await startSignedIn()
  expect(codeOf(await change({}, ['x-gatehouse-csrf']))).toEqual([403, 'cross_site_request'])
  expect(codeOf(await browser.get(projects))).toEqual([200, undefined])
})

test('the token of one session is not that of another', async () => {
  const { app, change, csrf, signIn } = await startSignedIn()
  const other = openBrowser(app)
  await signIn(other)
  const foreign = csrfIn((await other.get('/auth/session')).text)
  expect(foreign).not.toBe(csrf)
  expect(codeOf(await change({ 'x-gatehouse-csrf': foreign }))).toEqual([403, 'cross_site_request'])
})

test('401: the cookie on an inference endpoint, or with an Authorization header', async () => {
  const { browser } = await startSignedIn()
  const body = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] }
  expect((await browser.post('/v1/messages', { body })).status).toBe(401)
  expect((await browser.get('/v1/models')).status).toBe(401)
  const headers = { authorization: 'Bearer gate_adm_x' }
  expect(codeOf(await browser.get(projects, { headers }))).toEqual([401, 'invalid_api_key'])
})

test('401: two cookies, one of which may be planted, and a cookie that is no session', async () => {
  const { browser, token } = await startSignedIn()
  browser.jar.clear()
  const twice = `${cookie}=${token}; ${cookie}=${token}`
  expect(codeOf(await browser.get(projects, { headers: { cookie: twice } }))).toEqual([
    401,
    'invalid_session',
  ])
  const answer = await browser.get(projects, { headers: { cookie: `${cookie}=gate_ses_x` } })
  expect(codeOf(answer)).toEqual([401, 'invalid_session'])
  expect(answer.headers['www-authenticate']).toMatch(/^Bearer realm="organization", error=/)
})

test('a sign-in always makes a new secret, and ends the session that the browser had: nothing can be fixed', async () => {
  const { browser, token, signIn, app } = await startSignedIn()
  await signIn(browser)
  const own = browser.jar.get(cookie)
  expect(own).not.toBe(token)
  const attacker = openBrowser(app)
  attacker.jar.set(cookie, token)
  await expect
    .poll(async () => codeOf(await attacker.get(projects)), { timeout: 20_000 })
    .toEqual([401, 'invalid_session'])
  expect(codeOf(await browser.get(projects))).toEqual([200, undefined])
})

test('a sign-in that another site makes the browser post is refused', async () => {
  const { browser, organization } = await start()
  const form = { key: organization.adminKey }
  for (const site of ['cross-site', 'same-site', 'none']) {
    const headers = { 'sec-fetch-site': site }
    const answer = await browser.post('/auth/key', { form, headers })
    expect([answer.status, answer.setCookies]).toEqual([403, []])
  }
})

test('a cookie is worth nothing after sign-out, which no other site can cause', async () => {
  const { browser, csrf, token, app } = await startSignedIn()
  const headers = { 'sec-fetch-site': 'cross-site' }
  expect((await browser.post('/auth/sign_out', { form: { csrf }, headers })).status).toBe(403)
  expect((await browser.post('/auth/sign_out', { form: { csrf: 'x' } })).status).toBe(403)
  const answer = await browser.post('/auth/sign_out', { form: { csrf } })
  expect([answer.status, answer.headers.location]).toEqual([303, '/auth/sign_in'])
  expect(browser.jar.has(cookie)).toBe(false)
  const thief = openBrowser(app)
  thief.jar.set(cookie, token)
  await expect
    .poll(async () => codeOf(await thief.get(projects)), { timeout: 20_000 })
    .toEqual([401, 'invalid_session'])
})

test('a suspended organization is refused, also on the page of its session', async () => {
  const { browser, house, organization } = await startSignedIn()
  await setStatus(organization.organizationId, 'suspended', house)
  await expect
    .poll(async () => codeOf(await browser.get(projects)), { timeout: 20_000 })
    .toEqual([403, 'organization_suspended'])
  const page = await browser.get('/auth/session')
  expect([page.status, page.text]).toEqual([403, expect.stringContaining('is suspended')])
  const out = await browser.post('/auth/sign_out')
  expect([out.status, browser.jar.size]).toEqual([303, 0])
})

test('guesses are limited, and the page says what is wrong', async () => {
  const { app, signIn } = await start()
  const browser = openBrowser(app)
  const mistyped = await signIn(browser, 'gate_adm_x')
  expect([mistyped.status, mistyped.text]).toEqual([401, expect.stringContaining('copy it again')])
  for (let guess = 0; guess < 10; guess++) {
    const answer = await signIn(browser, formatKey('gate_adm_', randomBytes(32)))
    expect(answer.status).toBe(401)
  }
  const blocked = await signIn(browser, formatKey('gate_adm_', randomBytes(32)))
  expect(blocked.status).toBe(429)
})

test('without SIGN_IN_WITH_KEYS no key signs in, and without PUBLIC_URL there is no sign-in', async () => {
  const without = await start({ SIGN_IN_WITH_KEYS: 'false' })
  expect((await without.signIn()).status).toBe(404)
  expect((await without.browser.get('/auth/sign_in')).text).not.toContain('Administrator key')
  expect(JSON.parse((await without.browser.get('/auth/providers')).text)).toEqual({
    object: 'list',
    data: [],
    keys: false,
  })
  const api = await createTestApi()
  const browser = openBrowser(api.app)
  for (const path of ['/auth/sign_in', '/auth/session', '/auth/providers']) {
    expect((await browser.get(path)).text).toContain('PUBLIC_URL')
  }
  const wanted = { organizationId: api.organization.organizationId, role: 'owner' } as const
  const { token } = await createMemberSession(api.house, { ...wanted, form: 'browser' })
  browser.jar.set(cookie, token)
  expect(codeOf(await browser.get(projects))).toEqual([401, 'missing_credentials'])
})

test('pages are strict about what a browser may do with them, and a page of another site is no way back', async () => {
  const { browser } = await start()
  for (const returnTo of ['https://evil.example', '//evil.example', '/\\evil', '/auth/../x?y']) {
    const url = `/auth/sign_in?return_to=${encodeURIComponent(returnTo)}`
    expect((await browser.get(url)).text).toContain('name="return_to" value="/auth/session"')
  }
  const { headers, text } = await browser.get('/auth/sign_in')
  expect(headers).toMatchObject({
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  })
  const policy = String(headers['content-security-policy'])
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toContain('unsafe')
  expect(text).not.toMatch(/ style=|<style|<script>| on\w+=/)
  expect((await browser.get('/auth/style.css')).headers['content-type']).toMatch(/^text\/css/)
  expect((await browser.send('PUT', '/auth/key')).status).toBe(405)
})

test('a change in a browser is an event of the person who made it', async () => {
  const { change, db, organization } = await startSignedIn()
  await change()
  const [event] = await db
    .selectFrom('event')
    .select('header')
    .where('organization_id', '=', organization.organizationId)
    .orderBy('id', 'desc')
    .limit(1)
    .execute()
  expect(event?.header).toMatchObject({
    action: 'created',
    actor: expect.stringMatching(/^mem_/) as string,
  })
})
