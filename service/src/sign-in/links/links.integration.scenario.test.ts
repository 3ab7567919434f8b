import { randomBytes } from 'node:crypto'

import { expect, test } from 'vitest'

import { setStatus } from '#access/manage-organizations.ts'
import { makeLink } from '#access/member-links/make-link.ts'
import { formatKey } from '#access/secret.ts'
import { transact } from '#platform/transaction.ts'
import { openBrowser, publicUrl } from '#testing/browser.ts'
import { breakEverywhere } from '#testing/faults/break-everywhere.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

const minuteMs = 60_000

async function start({ tapped = false, environment = {} } = {}) {
  const clock = createTestClock()
  const settings = { PUBLIC_URL: publicUrl, ...environment }
  const api = await createTestApi({ now: clock.now, environment: settings, tapped })
  const { db, house } = api
  const { organizationId: organization_id } = api.organization
  const id = 'mem_ada'
  const person = { email: 'ada@example.com', name: 'Ada <b>', role: 'owner' }
  const invite = (status = 'invited') =>
    db
      .insertInto('member')
      .values({ organization_id, id, ...person, status, created_at: clock.now() })
      .execute()
  const make = async () => {
    const tools = { ...house, now: clock.now, publicUrl }
    const of = { organization_id, id }
    return (await transact(db, (tx) => makeLink(tx, 'sign_in', of, tools))).url
  }
  const open = (token: string, browser = openBrowser(api.app)) =>
    browser.post('/auth/link', { form: { token } })
  const use = (token: string, browser = openBrowser(api.app)) =>
    browser.post('/auth/link', { form: { token, confirmed: 'yes' } })
  const countSessions = async () => {
    const rows = await db.selectFrom('session').select('method').execute()
    return rows.length
  }
  const readEvents = async () => {
    const rows = await db.selectFrom('event').select('header').execute()
    return rows
      .map(({ header }) => header as { object: string; action: string })
      .filter(({ object }) => /member|session/.test(object))
      .map(({ object, action }) => `${object} ${action}`)
      .toSorted()
  }
  return { ...api, clock, invite, make, open, use, countSessions, readEvents }
}

const secretOf = (url: string) => url.split('#')[1] ?? ''

test('a link signs its member in: opening it only says whom it is for, and its secret is in no address', async () => {
  const { app, invite, make, open, use, countSessions, readEvents } = await start()
  await invite()
  const url = await make()
  expect(url).toMatch(/^https:\/\/gateway\.example\.com\/auth\/link#gate_lnk_\w{49}$/)
  const browser = openBrowser(app)
  expect((await browser.get('/auth/link')).text).toContain('/auth/address-form.js')
  const shown = await open(secretOf(url), browser)
  expect([shown.status, shown.setCookies]).toEqual([200, []])
  expect(shown.text).toContain('Ada &lt;b&gt; (ada@example.com)')
  expect(shown.text).toContain('Example Ltd')
  expect(await countSessions()).toBe(0)
  const used = await use(secretOf(url), browser)
  expect([used.status, used.headers.location]).toEqual([303, '/auth/session'])
  expect((await browser.get('/auth/session')).text).toContain('ada@example.com')
  expect(await readEvents()).toEqual([
    'organization.member updated',
    'organization.session signed_in',
  ])
})

test('a link is used once, also if many use it at the same time', async () => {
  const { invite, make, open, use, countSessions } = await start()
  await invite('active')
  const token = secretOf(await make())
  const answers = await Promise.all(Array.from({ length: 8 }, () => use(token)))
  const statuses = answers.map(({ status }) => status)
  expect(statuses.toSorted((one, other) => one - other)).toEqual([303, ...Array(7).fill(403)])
  expect(await countSessions()).toBe(1)
  const again = await open(token)
  expect([again.status, again.text]).toEqual([403, expect.stringContaining('Ask the operator')])
})

test('a link ends after ten minutes, and when there is another one', async () => {
  const { invite, make, open, use, clock } = await start()
  await invite('active')
  const [earlier, later] = [secretOf(await make()), secretOf(await make())]
  expect((await use(earlier)).status).toBe(403)
  clock.pass(10 * minuteMs - 1)
  expect((await open(later)).status).toBe(200)
  clock.pass(1)
  expect((await use(later)).status).toBe(403)
})

test('403: the link of a suspended member and of a suspended organization; 404 without SIGN_IN_WITH_KEYS', async () => {
  const { db, house, organization, invite, make, open, use } = await start()
  await invite('active')
  const token = secretOf(await make())
  await db.updateTable('member').set({ status: 'suspended' }).execute()
  expect((await open(token)).text).toContain('Your membership is suspended')
  expect((await use(token)).status).toBe(403)
  await db.updateTable('member').set({ status: 'active' }).execute()
  await setStatus(organization.organizationId, 'suspended', house)
  expect((await use(token)).text).toContain('The organization is suspended')
  await setStatus(organization.organizationId, 'active', house)
  expect((await use(token)).status, 'a refusal leaves the link').toBe(303)

  const without = await start({ environment: { SIGN_IN_WITH_KEYS: 'false' } })
  await without.invite('active')
  const unused = secretOf(await without.make())
  expect((await openBrowser(without.app).get('/auth/link')).status).toBe(404)
  expect((await without.use(unused)).status).toBe(404)
})

test('403: a form of another site; a link of another kind and guesses are refused, and many are 429', async () => {
  const { app, invite, make, use } = await start()
  await invite('active')
  const token = secretOf(await make())
  const headers = { 'sec-fetch-site': 'same-site' }
  const form = { token, confirmed: 'yes' }
  expect((await openBrowser(app).post('/auth/link', { form, headers })).status).toBe(403)
  expect((await use(formatKey('gate_inv_', randomBytes(32)))).status).toBe(403)
  for (let guess = 0; guess < 10; guess++) {
    expect((await use(formatKey('gate_lnk_', randomBytes(32)))).status).toBe(403)
  }
  expect((await use(formatKey('gate_lnk_', randomBytes(32)))).status).toBe(429)
})

test('broken before any statement: the link is unused, or it is used and there is one session', async () => {
  const api = await start({ tapped: true })
  const { db, invite, make, use, countSessions } = api
  const countLinks = async () =>
    (await db.selectFrom('member_link').select('kind').execute()).length

  async function prepare() {
    await db.deleteFrom('session').execute()
    await db.deleteFrom('member').execute()
    await invite()
    return secretOf(await make())
  }
  const statements = await breakEverywhere(api, {
    prepare,
    attempt: async (token) => (await use(token)).status,
    async check(token, outcome) {
      const isNew = outcome === 'new'
      expect([await countLinks(), await countSessions()]).toEqual(isNew ? [0, 1] : [1, 0])
      expect((await use(token)).status).toBe(isNew ? 403 : 303)
      expect(await countSessions()).toBe(1)
    },
  })
  const text = statements.join('\n')
  for (const each of ['delete from "member_link"', 'update "member"', 'insert into "session"']) {
    expect(text).toContain(each)
  }
}, 180_000)
