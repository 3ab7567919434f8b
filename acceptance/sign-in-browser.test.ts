import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { readMe } from '@gatehouse/contract/members/me'
import { createMember } from '@gatehouse/contract/members/member'
import { freePort } from '@gatehouse/tools/free-port'
import { programFile } from '@gatehouse/tools/program'
import {
  clientId,
  clientSecret,
  startProviderDouble,
} from '@gatehouse/tools/testing/provider-double'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'

import { call } from './support/call.ts'
import { useBrowser } from './support/sign-in/use-browser.ts'
import { useStack } from './support/use-stack.ts'

// All ways to sign in, in a real Chromium: with a provider, a key, a link of the operator, an invitation, and for a program. No page
// violates its own Content-Security-Policy.

const stack = useStack({ models: null })
const { open, shoot } = useBrowser()

const account = (email: string, more: object = {}) => ({
  email,
  email_verified: true,
  name: email.split('@')[0],
  ...more,
})
const accounts = {
  ada: account('ada@example.com', { groups: ['staff'] }),
  bob: account('bob@example.com'),
  eve: account('eve@example.com'),
}

let url = ''
let service: Record<string, string> = {}
beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const double = await startProviderDouble({
    redirectUris: [`${url}/auth/corp/callback`],
    accounts,
  })
  const { folder, description, startApi } = stack()
  const file = join(folder, 'sign-in.json')
  const organization = description.organization_id
  const { issuer, target } = double
  const provider = { id: 'corp', name: 'Example Corp', issuer, client_id: clientId }
  const settings = {
    providers: [{ ...provider, client_secret: { env: 'CORP_SECRET' } }],
    mappings: [{ group: 'staff', organization, role: 'developer' }],
    create_members: true,
  }
  await writeFile(file, JSON.stringify(settings))
  const more = { PUBLIC_URL: url, SIGN_IN_FILE: file, EGRESS_PRIVATE_TARGETS: target }
  service = { ...stack().service, ...more, CORP_SECRET: clientSecret, PORT: String(port) }
  await startApi('api-sign-in', service)
  return double.stop
})

const seen = (page: Page) => page.locator('main').innerText()

/** From the sign-in page to the page of the provider, and through it. */
async function signInAtProvider(page: Page, who: string) {
  await page.goto(`${url}/auth/sign_in`)
  await page.getByRole('link', { name: 'Sign in with Example Corp' }).click()
  await page.locator('[name=account]').fill(who)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

test('a person signs in with the provider, sees who is signed in, and signs out there too', async () => {
  const page = await open()
  await page.goto(`${url}/auth/sign_in`)
  await shoot(page, 'sign-in')
  await signInAtProvider(page, 'ada')
  await page.waitForURL(`${url}/auth/session`)
  expect(await seen(page)).toContain('ada@example.com')
  await shoot(page, 'session')
  const cookies = await page.context().cookies(url)
  const own = cookies.find(({ name }) => name === 'gatehouse')
  expect(own).toMatchObject({ httpOnly: true, sameSite: 'Lax' })
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(`${url}/auth/sign_in`)
  await page.goto(`${url}/auth/session`)
  expect(page.url(), 'there is no session any more').toBe(`${url}/auth/sign_in`)
  await page.getByRole('link', { name: 'Sign in with Example Corp' }).click()
  await page.locator('[name=account]').waitFor() // the provider asks again
})

test('what goes wrong says what to do: no role, refused, wrong state, an answer that is used twice', async () => {
  const other = await open()
  await signInAtProvider(other, 'eve')
  await other.getByText('Ask an administrator for an invitation').waitFor()
  await shoot(other, 'no-entry')

  const page = await open()
  const problem = () => page.getByRole('alert').innerText()
  await signInAtProvider(page, 'refused')
  await page.getByText('did not let you sign in').waitFor()

  // The answer of a sign-in that this browser has not started last.
  await page.goto(`${url}/auth/corp`)
  await page.locator('[name=account]').waitFor()
  await page.goto(`${url}/auth/corp/callback?code=x&state=x`)
  expect(await problem()).toContain('has started last')

  const answers: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('/auth/corp/callback')) answers.push(request.url())
  })
  await signInAtProvider(page, 'ada')
  await page.waitForURL(`${url}/auth/session`)
  await page.goto(answers[0] ?? '')
  expect(await problem()).toContain('was not started in this browser')
})

test('an administrator key signs in; a mistyped one is told so', async () => {
  const page = await open()
  await page.goto(`${url}/auth/sign_in`)
  const field = page.getByLabel('Administrator key')
  await field.fill('gate_adm_x')
  await page.getByRole('button', { name: 'Sign in with a key' }).click()
  expect(await page.getByRole('alert').innerText()).toContain('copy it again')
  await shoot(page, 'wrong-key')
  await field.fill(stack().description.admin_key)
  await page.getByRole('button', { name: 'Sign in with a key' }).click()
  await page.waitForURL(`${url}/auth/session`)
  expect(await seen(page)).toContain('Administrator key')
})

const invite = async (email: string) => {
  const credential = stack().description.admin_key
  const body = { email, role: 'viewer' }
  const { json } = await call(url, createMember, { credential, body })
  return json as { invitation_url: string }
}

test('a link of the operator says whom it signs in, and does it once; its secret leaves the address', async () => {
  await invite('carl@example.com')
  const { organization_id: id } = stack().description
  const words = ['operator', 'sign-in-link', '--organization', id, '--email', 'carl@example.com']
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [programFile('gatehouse'), ...words, '--json'],
    { env: service },
  )
  const { url: link } = JSON.parse(stdout) as { url: string }
  const page = await open()
  await page.goto(link)
  const button = page.getByRole('button', { name: 'Sign in as carl' })
  await button.waitFor()
  expect(page.url()).toBe(`${url}/auth/link`)
  await shoot(page, 'link')
  await button.click()
  await page.waitForURL(`${url}/auth/session`)
  expect(await seen(page)).toContain('carl@example.com')
  const again = await open()
  await again.goto(link)
  await again.getByRole('alert').waitFor()
  expect(await again.getByRole('alert').innerText()).toContain('Ask the operator for a new one')
})

test('an invitation leads through the provider, for its address only', async () => {
  const { invitation_url: link } = await invite('bob@example.com')
  const accept = async (who: string) => {
    const page = await open()
    await page.goto(link)
    const button = page.getByRole('button', { name: 'Sign in with Example Corp' })
    await button.waitFor()
    await shoot(page, 'invitation')
    await button.click()
    await page.locator('[name=account]').fill(who)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('main').waitFor()
    return page
  }
  const wrong = await accept('eve')
  await wrong.getByRole('alert').waitFor()
  expect(await wrong.getByRole('alert').innerText()).toContain('for another address')
  const page = await accept('bob')
  await page.waitForURL(`${url}/auth/session`)
  expect(await seen(page)).toContain('bob@example.com')
})

test('a person confirms a program, which acts as that person then', async () => {
  const page = await open()
  await signInAtProvider(page, 'ada')
  await page.waitForURL(`${url}/auth/session`)
  const post = async (path: string, form: Record<string, string>) => {
    const body = new URLSearchParams({ client_id: 'gatehouse', ...form })
    const answer = await fetch(`${url}${path}`, { method: 'POST', body })
    return (await answer.json()) as Record<string, string>
  }
  const asked = await post('/auth/device', { device_name: 'ada-laptop' })
  await page.goto(asked['verification_uri'] ?? '')
  await page.getByLabel('Code').fill('bcdf-ghjk')
  await page.getByRole('button', { name: 'Go on' }).click()
  expect(await page.getByRole('alert').innerText()).toContain('No device waits with this code')
  await shoot(page, 'device-code')
  await page.goto(asked['verification_uri_complete'] ?? '')
  const allow = page.getByRole('button', { name: 'Allow' })
  await allow.waitFor()
  expect(await seen(page)).toContain(asked['user_code'])
  await shoot(page, 'device-question')
  await allow.click()
  await page.getByText('Go back to the program').waitFor()
  await shoot(page, 'device-allowed')
  const given = await post('/auth/device/token', {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: asked['device_code'] ?? '',
  })
  const credential = given['access_token'] ?? ''
  const { json } = await call(url, readMe, { credential })
  expect(json).toMatchObject({ member: { email: 'ada@example.com' }, role: 'developer' })
})
