import { readMe } from '@gatehouse/contract/members/me'
import { listMembers } from '@gatehouse/contract/members/member'
import { expect, test } from 'vitest'

import { type Browser, csrfIn, openBrowser, publicUrl } from '#testing/browser.ts'
import { breakEverywhere } from '#testing/faults/break-everywhere.ts'
import { createMemberSession } from '#testing/member-session.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

const minuteMs = 60_000
const cookie = '__Host-gatehouse'
const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
const client_id = 'gatehouse'

type Asked = {
  device_code: string
  user_code: string
  verification_uri: string
  verification_uri_complete: string
  expires_in: number
  interval: number
}
type Polled = { access_token: string; token_type: string; expires_in: number; error: string }

async function start({ tapped = false } = {}) {
  const clock = createTestClock()
  const api = await createTestApi({
    now: clock.now,
    environment: { PUBLIC_URL: publicUrl },
    tapped,
  })
  const program = openBrowser(api.app)
  const { organizationId } = api.organization
  const ask = async (form: Record<string, string> = {}) => {
    const sent = { client_id, device_name: 'ada <laptop>', ...form }
    const { status, text, headers } = await program.post('/auth/device', { form: sent })
    return { status, headers, body: JSON.parse(text) as Asked & { error: string } }
  }
  const poll = async (device_code: string, form: Record<string, string> = {}) => {
    const sent = { grant_type, device_code, client_id, ...form }
    const { status, text } = await program.post('/auth/device/token', { form: sent })
    return { status, body: JSON.parse(text) as Polled }
  }
  /** After the interval. */
  const pollLater = (device_code: string) => {
    clock.pass(5000)
    return poll(device_code)
  }
  const signIn = async (role: 'owner' | 'viewer' = 'viewer') => {
    const wanted = { organizationId, role, form: 'browser' } as const
    const { token, memberId, sessionId } = await createMemberSession(api.house, wanted)
    const browser = openBrowser(api.app)
    browser.jar.set(cookie, token)
    const csrf = csrfIn((await browser.get('/auth/device')).text)
    const confirm = (user_code: string, decision?: string, more: Record<string, string> = {}) =>
      browser.post('/auth/device/confirm', {
        form: { csrf, user_code, ...(decision && { decision }) },
        headers: more,
      })
    return { browser, csrf, confirm, memberId, sessionId }
  }
  return { ...api, organizationId, clock, ask, poll, pollLater, signIn }
}

const endSession = async (browser: Browser, csrf: string) =>
  browser.post('/auth/sign_out', { form: { csrf } })

test('a program gets a session when a person has confirmed its code, with what the person may do', async () => {
  const { ask, poll, pollLater, signIn, send } = await start()
  const { status, headers, body: asked } = await ask()
  expect([status, headers['cache-control']]).toEqual([200, 'no-store'])
  expect(asked).toEqual({
    device_code: expect.stringMatching(/^gate_dev_\w{49}$/) as string,
    user_code: expect.stringMatching(/^[B-Z]{4}-[B-Z]{4}$/) as string,
    verification_uri: `${publicUrl}/auth/device`,
    verification_uri_complete: `${publicUrl}/auth/device#${asked.user_code}`,
    expires_in: 600,
    interval: 5,
  })
  const waiting = await poll(asked.device_code)
  expect([waiting.status, waiting.body.error]).toEqual([400, 'authorization_pending'])
  const ada = await signIn()
  const question = await ada.confirm(asked.user_code.toLowerCase().replace('-', ' '))
  for (const text of [asked.user_code, 'ada &lt;laptop&gt;', '127.0.0.1', 'viewer']) {
    expect(question.text).toContain(text)
  }
  expect((await pollLater(asked.device_code)).body.error).toBe('authorization_pending')
  expect((await ada.confirm(asked.user_code, 'allow')).text).toContain('The device is signed in')
  const { status: ok, body } = await pollLater(asked.device_code)
  expect([ok, body]).toEqual([
    200,
    {
      access_token: expect.stringMatching(/^gate_ses_\w{49}$/) as string,
      token_type: 'Bearer',
      expires_in: 28_800,
    },
  ])
  const credential = body.access_token
  expect((await send(readMe, { credential })).body).toMatchObject({ role: 'viewer' })
  expect((await send(listMembers, { credential })).status).toBe(403)
  expect((await pollLater(asked.device_code)).body.error, 'a code is used once').toBe(
    'invalid_grant',
  )
  expect((await ada.confirm(asked.user_code, 'allow')).status).toBe(400)
})

test('a program that asks too often is slowed down, and gets its session in the end', async () => {
  const { ask, poll, clock, signIn } = await start()
  const { device_code, user_code } = (await ask()).body
  const errorAfter = async (ms: number) => {
    clock.pass(ms)
    return (await poll(device_code)).body.error
  }
  expect(await errorAfter(0)).toBe('authorization_pending')
  expect(await errorAfter(4000)).toBe('slow_down')
  expect(await errorAfter(9000)).toBe('slow_down') // ten seconds are the interval now
  expect(await errorAfter(15_000)).toBe('authorization_pending')
  await (await signIn()).confirm(user_code, 'allow')
  clock.pass(15_000)
  expect((await poll(device_code)).status).toBe(200)
})

test('a person refuses; codes expire; a wrong code is told so', async () => {
  const { ask, pollLater, clock, signIn } = await start()
  const ada = await signIn()
  const refused = (await ask()).body
  expect((await ada.confirm(refused.user_code, 'refuse')).text).toContain('was refused')
  expect((await pollLater(refused.device_code)).body.error).toBe('access_denied')
  expect((await ada.confirm(refused.user_code, 'allow')).status).toBe(400)
  const late = (await ask()).body
  await ada.confirm(late.user_code, 'allow')
  clock.pass(10 * minuteMs)
  expect((await pollLater(late.device_code)).body.error).toBe('expired_token')
  expect((await ada.confirm((await ask()).body.user_code)).status).toBe(200)
  const mistyped = await ada.confirm('BCDF-GHJK')
  expect([mistyped.status, mistyped.text]).toEqual([
    400,
    expect.stringContaining('No device waits with this code'),
  ])
})

test('access_denied: the person has signed out or is suspended before the program comes', async () => {
  const { ask, pollLater, signIn, db } = await start()
  const [ada, bob] = [await signIn(), await signIn()]
  const asked = [(await ask()).body, (await ask()).body]
  await ada.confirm(asked[0]!.user_code, 'allow')
  await bob.confirm(asked[1]!.user_code, 'allow')
  await endSession(ada.browser, ada.csrf)
  const { memberId } = bob
  await db.updateTable('member').set({ status: 'suspended' }).where('id', '=', memberId).execute()
  for (const { device_code } of asked) {
    expect((await pollLater(device_code)).body.error).toBe('access_denied')
  }
})

test('403: confirmed by another site, or without the token of the page; without a session: the sign-in page', async () => {
  const { app, ask, poll, signIn } = await start()
  const { device_code, user_code } = (await ask()).body
  const { confirm, browser } = await signIn()
  expect((await confirm(user_code, 'allow', { 'sec-fetch-site': 'same-site' })).status).toBe(403)
  const form = { user_code, decision: 'allow', csrf: 'x' }
  expect((await browser.post('/auth/device/confirm', { form })).status).toBe(403)
  const stranger = openBrowser(app)
  const sent = await stranger.post('/auth/device/confirm', { form })
  expect([sent.status, sent.headers.location]).toEqual([
    303,
    '/auth/sign_in?return_to=/auth/device',
  ])
  expect((await poll(device_code)).body.error).toBe('authorization_pending')
})

test('what is no request of a device is refused with a code of OAuth', async () => {
  const { ask, poll } = await start()
  expect((await ask({ client_id: '' })).body.error).toBe('invalid_client')
  expect((await ask({ client_id: '<b>' })).body.error).toBe('invalid_client')
  expect((await ask({ device_name: 'a\u202eb' })).body.error).toBe('invalid_request')
  expect((await ask({ device_name: 'x'.repeat(81) })).body.error).toBe('invalid_request')
  const { device_code } = (await ask()).body
  expect((await poll(device_code, { grant_type: 'password' })).body.error).toBe(
    'unsupported_grant_type',
  )
  expect((await poll(device_code, { client_id: 'another' })).body.error).toBe('invalid_grant')
  expect((await poll('gate_dev_x')).body.error).toBe('invalid_grant')
})

test('codes cannot be guessed: ten wrong ones, and then also a right one is 429', async () => {
  const { ask, signIn, db } = await start()
  const { confirm, memberId } = await signIn()
  const { user_code } = (await ask()).body
  for (let guess = 0; guess < 10; guess++) {
    expect((await confirm('BCDF-GHJK')).status).toBe(400)
  }
  expect((await confirm(user_code)).status).toBe(429)
  expect((await (await signIn()).confirm(user_code)).status).toBe(200)
  const events = await db.selectFrom('event').select('header').execute()
  const refusals = events
    .map(({ header }) => header as Record<string, unknown>)
    .filter(({ action }) => action === 'sign_in_refused')
  expect(refusals).toHaveLength(10)
  expect(refusals[0]).toMatchObject({ actor: memberId, actor_type: 'member' })
})

test('429: an address has thirty devices that wait', async () => {
  const { ask, clock } = await start()
  for (let device = 0; device < 30; device++) expect((await ask()).status).toBe(200)
  const { status, headers, body } = await ask()
  expect([status, body.error, headers['retry-after']]).toEqual([429, 'slow_down', '60'])
  clock.pass(10 * minuteMs)
  expect((await ask()).status).toBe(200)
})

test('of many requests at the same time one gets the session; of two answers the first counts', async () => {
  const { ask, poll, signIn, db } = await start()
  const { device_code, user_code } = (await ask()).body
  const [ada, bob] = [await signIn(), await signIn()]
  const said = await Promise.all([ada.confirm(user_code, 'allow'), bob.confirm(user_code, 'allow')])
  expect(said.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 400])
  const got = await Promise.all(Array.from({ length: 8 }, () => poll(device_code)))
  expect(got.filter(({ status }) => status === 200)).toHaveLength(1)
  const made = await db.selectFrom('session').select('id').where('form', '=', 'token').execute()
  expect(made).toHaveLength(1)
})

test('broken before any statement: the code is unused and there is no session, or there is one', async () => {
  const api = await start({ tapped: true })
  const { db, ask, poll, pollLater, signIn } = api
  const { confirm } = await signIn()
  const countTokens = async () =>
    (await db.selectFrom('session').select('id').where('form', '=', 'token').execute()).length

  const statements = await breakEverywhere(api, {
    async prepare() {
      await db.deleteFrom('session').where('form', '=', 'token').execute()
      await db.deleteFrom('device_sign_in').execute()
      const { device_code, user_code } = (await ask()).body
      await confirm(user_code, 'allow')
      return device_code
    },
    attempt: async (code) => (await poll(code)).status,
    async check(code, outcome) {
      const isNew = outcome === 'new'
      expect(await countTokens()).toBe(isNew ? 1 : 0)
      expect((await pollLater(code)).status).toBe(isNew ? 400 : 200)
      expect(await countTokens()).toBe(1)
    },
  })
  for (const each of ['delete from "device_sign_in"', 'insert into "session"']) {
    expect(statements.join('\n')).toContain(each)
  }
}, 180_000)

test('the database has neither code', async () => {
  const { ask, db } = await start()
  const { device_code, user_code } = (await ask()).body
  const rows = JSON.stringify(await db.selectFrom('device_sign_in').selectAll().execute())
  expect(rows).not.toContain(device_code)
  expect(rows).not.toContain(user_code)
})
