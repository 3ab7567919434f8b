import { createClient } from '@gatehouse/contract/client'
import { createMember } from '@gatehouse/contract/members/member'
import { createProject } from '@gatehouse/contract/project'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'

import { useConsole } from './support/console/visit-console.ts'

// What people do in the console, in a real browser against a real gateway.

const { stack, seeded, visit } = useConsole()

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const inWindow = (page: Page) => page.getByRole('dialog')
const submit = (page: Page, name: string) => inWindow(page).getByRole('button', { name }).click()
const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })
const said = (page: Page, text: string) => page.locator('.toasts').getByText(text).waitFor()

/** Whether a project key is accepted. */
async function statusOf(secret: string): Promise<number> {
  const url = new URL('/v1/models', stack().description.base_url)
  return (await fetch(url, { headers: { authorization: `Bearer ${secret}` } })).status
}

test('without a session a page leads to the sign-in, and back to itself', async () => {
  const { page, close } = await visit({ as: null })
  const { base_url: baseUrl, admin_key: adminKey } = stack().description
  await page.goto(`${baseUrl}/console/members`)
  await page.waitForURL('**/auth/sign_in?return_to=/console/members')
  await page.getByLabel('Administrator key').fill(adminKey)
  await page.getByRole('button', { name: 'Sign in with a key' }).click()
  await page.waitForURL('**/console/members')
  await page.getByRole('heading', { level: 1, name: 'Members' }).waitFor()
  await page.locator('summary').click()
  await button(page, 'Sign out').click()
  await page.waitForURL('**/auth/**')
  await page.goto(`${baseUrl}/console/members`)
  await expect.poll(() => page.url()).toContain('/auth/sign_in')
  await close()
})

test('a project is made, limited, labelled and archived', async () => {
  const { page, open, expectNothingForbidden, close } = await visit()
  await open('projects')
  await page.keyboard.press('n')
  await page.getByLabel('Name').fill('Translations')
  await submit(page, 'Create project')
  await page.getByRole('heading', { level: 1, name: 'Translations' }).waitFor()

  await button(page, 'Edit limits').click()
  await page.getByLabel('Requests per minute').fill('12')
  await page.getByLabel('US dollars').fill('99.5')
  await submit(page, 'Save')
  await page.getByText('$99.50 a month').waitFor()

  await button(page, 'Edit project').click()
  await page.getByLabel('Labels').fill('cost_center: 12\nbad label: x')
  await submit(page, 'Save')
  await inWindow(page).getByRole('alert').waitFor()
  await page.getByLabel('Labels').fill('cost_center: 12')
  await submit(page, 'Save')
  await page.getByText('cost_center: 12', { exact: true }).waitFor()

  await button(page, 'Edit models').click()
  await page.getByLabel('Only these').check()
  await inWindow(page).getByRole('checkbox').first().check()
  await submit(page, 'Save')
  await page.locator('code.tag').first().waitFor()

  await button(page, 'Archive archive').click()
  await submit(page, 'Archive project')
  await page.getByText('archived, so its keys do not work').waitFor()
  expect(await button(page, 'Edit limits').count()).toBe(0)
  await expectNothingForbidden()
  await close()
})

test('the secret of a new key is shown once, works, is kept nowhere, and stops when it is revoked', async () => {
  const { page, open, expectNothingForbidden, close } = await visit()
  await open(`projects/${seeded().projectId}/keys`)
  await button(page, 'New key').click()
  await page.getByLabel('Name').fill('from the browser')
  await submit(page, 'Create key')
  const secret = (await page.getByLabel('Secret').textContent()) ?? ''
  expect(secret).toMatch(/^gate_prj_\w{49}$/)
  for (const sdk of ['Anthropic, TypeScript', 'curl']) {
    await page.getByLabel('A first call with').selectOption(sdk)
    const snippet = (await page.getByLabel('Snippet').textContent()) ?? ''
    expect([sdk, snippet.includes(secret)]).toEqual([sdk, true])
  }
  expect(await statusOf(secret)).toBe(200)
  // Neither Escape nor a click beside the window loses what cannot be had again.
  await page.keyboard.press('Escape')
  await page.mouse.click(5, 5)
  expect(await page.getByLabel('Secret').count()).toBe(1)
  await submit(page, 'I have copied it')

  const everywhere = async () =>
    JSON.stringify([page.url(), await page.content(), await page.context().storageState()])
  expect(await everywhere()).not.toContain(secret)
  await page.reload()
  await row(page, 'from the browser').waitFor()
  expect(await everywhere()).not.toContain(secret)

  await row(page, 'from the browser').getByRole('button', { name: 'Limits' }).click()
  await page.getByLabel('Tokens per minute').fill('500')
  await submit(page, 'Save')
  await row(page, 'from the browser').getByText('500 tokens/min').waitFor()
  await row(page, 'from the browser').getByRole('button', { name: 'Revoke' }).click()
  await inWindow(page).getByText('refused with 401 within 5 seconds').waitFor()
  await submit(page, 'Revoke key')
  await said(page, 'from the browser has been revoked.')
  await expect.poll(() => statusOf(secret)).toBe(401)
  await expectNothingForbidden()
  await close()
})

test('a member is invited, gets another role, is suspended, comes back and leaves', async () => {
  const { page, open, close } = await visit()
  await open('members')
  await button(page, 'Invite member').click()
  await page.getByLabel('Email address').fill('Katherine@example.com')
  await page.getByLabel('Developer').check()
  await submit(page, 'Invite member')
  const link = inWindow(page).getByLabel('Invitation link')
  const first = await link.textContent()
  expect(first).toMatch(/\/auth\/invitation#gate_inv_\w+$/)
  await submit(page, 'I have copied it')
  await row(page, 'katherine@example.com').getByText('invited').waitFor()
  expect(await page.content()).not.toContain('gate_inv_')
  await row(page, 'katherine@example.com').getByRole('button', { name: 'New link' }).click()
  await submit(page, 'Make link')
  expect(await link.textContent()).not.toBe(first)
  await submit(page, 'I have copied it')

  const katherine = row(page, 'katherine@example.com')
  await katherine.getByRole('button', { name: 'Change role' }).click()
  await page.getByLabel('Auditor').check()
  await submit(page, 'Change role')
  await katherine.getByText('Auditor').waitFor()
  await katherine.getByRole('button', { name: 'Suspend' }).click()
  await submit(page, 'Suspend')
  await katherine.getByText('suspended').waitFor()
  await katherine.getByRole('button', { name: 'Reinstate' }).click()
  await submit(page, 'Reinstate')
  await katherine.getByText('invited').waitFor()
  await katherine.getByRole('button', { name: 'Remove' }).click()
  await submit(page, 'Remove member')
  await said(page, 'is no longer a member.')
  await expect.poll(() => katherine.count()).toBe(0)
  await close()
})

test('people see where they are signed in, and end their other sessions', async () => {
  const other = await visit({ as: 'admin' })
  const { page, open, close } = await visit({ as: 'admin' })
  await other.open('account')
  await open('account')
  await row(page, '(this one)').waitFor()
  const end = page.getByRole('button', { name: 'End', exact: true })
  expect(await end.count()).toBe(1)
  await end.click()
  await said(page, 'The session has ended.')
  await expect.poll(() => end.count()).toBe(0)
  await expect
    .poll(() => other.page.evaluate(`fetch('/v1/organization/me').then(({ status }) => status)`), {
      timeout: 8000,
    })
    .toBe(401)

  const owner = await visit()
  await owner.open('members')
  await row(owner.page, 'Grace Hopper').getByRole('button', { name: 'Sessions' }).click()
  await inWindow(owner.page).getByText('Browser').waitFor()
  await submit(owner.page, 'End all')
  await inWindow(owner.page).getByText('Signed in nowhere.').waitFor()
  for (const { close: leave } of [other, { close }, owner]) await leave()
})

test('the last owner stays, and the page says why', async () => {
  const { page, open, close } = await visit()
  await open('members')
  await row(page, '(you)').getByRole('button', { name: 'Suspend' }).click()
  await submit(page, 'Suspend')
  const alert = inWindow(page).getByRole('alert')
  await alert.waitFor()
  expect(await alert.textContent()).toContain('Make another active member an owner first')
  await close()
})

test('a developer sees own projects, makes and revokes an own key, and is offered nothing else', async () => {
  const { page, open, watched, close } = await visit({ as: 'developer' })
  await open('projects')
  expect(await button(page, 'New project').count()).toBe(0)
  expect(await page.getByRole('link', { name: 'Members' }).count()).toBe(0)
  await open(`projects/${seeded().projectId}`)
  expect(await page.getByRole('button', { name: /^Edit/ }).count()).toBe(0)
  await page.getByRole('link', { name: 'Keys', exact: true }).click()
  await button(page, 'New key').click()
  await page.getByLabel('Name').fill('my laptop')
  await submit(page, 'Create key')
  await submit(page, 'I have copied it')
  await row(page, 'my laptop').getByText('you', { exact: true }).waitFor()
  const others = row(page, 'Load test').getByRole('button')
  expect(await others.count()).toBe(0)
  await row(page, 'my laptop').getByRole('button', { name: 'Revoke' }).click()
  await submit(page, 'Revoke key')
  await said(page, 'my laptop has been revoked.')
  expect(watched.errors).toEqual([])
  await close()
})

test('with the keyboard only: to a project by its name, a new key, and back', async () => {
  const { page, open, close } = await visit()
  await open('members')
  await page.keyboard.press('Control+k')
  await page.keyboard.type('support as')
  await page.getByRole('option', { name: 'Support assistant' }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Support assistant' }).waitFor()
  await page.getByRole('link', { name: 'Keys', exact: true }).focus()
  await page.keyboard.press('Enter')
  await button(page, 'New key').waitFor()
  await page.keyboard.press('n')
  await page.keyboard.type('typed')
  await page.keyboard.press('Enter')
  await page.getByLabel('Secret').waitFor()
  await submit(page, 'I have copied it')
  // The focus is where it was before the window.
  await row(page, 'typed').waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('r')
  await page.getByRole('heading', { level: 1, name: 'Roles' }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await page.keyboard.press('Escape')
  await expect.poll(() => inWindow(page).count()).toBe(0)
  await close()
})

test('a session that ends elsewhere leaves the page within ten seconds, and nothing stays on it', async () => {
  const { page, open, close } = await visit({ hasOwnClock: true })
  await open('members')
  await page.evaluate(async () => {
    const me = (await (await fetch('/v1/organization/me')).json()) as { csrf_token: string }
    const body = new URLSearchParams({ csrf: me.csrf_token })
    await fetch('/auth/sign_out', { method: 'POST', body, redirect: 'manual' })
  })
  await page.clock.runFor(10_000)
  await page.getByText('You have been signed out').waitFor()
  expect(await page.content()).not.toContain('grace@example.com')
  await close()
})

test('without the token of its session a change is refused', async () => {
  const { page, open, close } = await visit()
  await open('projects')
  const answer = await page.evaluate(async () => {
    const body = JSON.stringify({ name: 'Forged' })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch('/v1/organization/projects', { method: 'POST', headers, body })
    return [response.status, await response.text()]
  })
  expect(answer).toEqual([403, expect.stringContaining('cross_site_request')])
  await close()
})

test('CONSOLE=read_only: the page offers no change, sessions make none, and keys still do', async () => {
  const { baseUrl } = await stack().startApi('api-read-only', { CONSOLE: 'read_only' })
  const { page, open, close } = await visit({ baseUrl })
  await open('projects')
  await page.getByText('lets the console read only').waitFor()
  expect(await button(page, 'New project').count()).toBe(0)
  const answer = await page.evaluate(async () => {
    const me = (await (await fetch('/v1/organization/me')).json()) as { csrf_token: string }
    const headers = { 'content-type': 'application/json', 'x-gatehouse-csrf': me.csrf_token }
    const body = JSON.stringify({ name: 'Refused' })
    const response = await fetch('/v1/organization/projects', { method: 'POST', headers, body })
    return [response.status, await response.text()]
  })
  expect(answer).toEqual([403, expect.stringContaining('console_read_only')])
  const client = createClient({ baseUrl, credential: stack().description.admin_key })
  const made = await client.call(createProject, { body: { name: 'By a key' } })
  expect(made.name).toBe('By a key')
  await close()
})

test('CONSOLE=false: there is no console, and everything else is as before', async () => {
  const { baseUrl } = await stack().startApi('api-without-console', { CONSOLE: 'false' })
  for (const path of ['/console', '/console/', '/console/assets/x.js']) {
    expect((await fetch(`${baseUrl}${path}`, { redirect: 'manual' })).status).toBe(404)
  }
  const client = createClient({ baseUrl, credential: stack().description.admin_key })
  const body = { email: 'later@example.com', role: 'viewer' } as const
  expect((await client.call(createMember, { body })).status).toBe('invited')
})
