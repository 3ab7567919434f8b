import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'

import { useConsole } from './support/console/visit-console.ts'

// What holds for every page of the console, in a real browser.

const { stack, seeded, visit } = useConsole()

const paths = () => {
  const project = `projects/${seeded().projectId}`
  return [
    'projects',
    project,
    `${project}/keys`,
    `${project}/members`,
    'members',
    'roles',
    'keys',
    'account',
    'no/such/page',
  ]
}

const press = (name: string) => async (page: Page) =>
  page.getByRole('button', { name }).first().click()

/** Windows over the pages. */
const windows = (): [path: string, open: (page: Page) => Promise<void>][] => {
  const project = `projects/${seeded().projectId}`
  return [
    ['projects', press('New project')],
    ['projects', (page) => page.keyboard.press('Control+k')],
    ['projects', (page) => page.keyboard.press('?')],
    ['projects', (page) => page.locator('summary').click()],
    [project, press('Edit limits')],
    [project, press('Edit models')],
    [`${project}/keys`, press('New key')],
    [`${project}/keys`, press('Revoke')],
    ['members', press('Invite member')],
    ['members', press('Sessions')],
  ]
}

async function expectAccessible(page: Page, where: string) {
  const { violations } = await new AxeBuilder({ page })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'])
    .analyze()
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join()}`)
  expect([where, found]).toEqual([where, []])
}

test.each(['light', 'dark'] as const)(
  'every page is accessible, makes few requests, does not jump, and does nothing forbidden: %s',
  async (colorScheme) => {
    const { page, open, watched, expectNothingForbidden, close } = await visit({ colorScheme })
    for (const path of paths()) {
      await open(path)
      expect(watched.calls.length, `${path}: ${watched.calls.join(', ')}`).toBeLessThanOrEqual(3)
      await expectAccessible(page, path)
      expect(await page.evaluate<number>('window.shift'), `${path} jumps`).toBeLessThanOrEqual(0.05)
      await expectNothingForbidden()
    }
    // What they are made of is on the pages, too, so one theme is enough: the one with less contrast.
    for (const [path, show] of colorScheme === 'dark' ? windows() : []) {
      await open(path)
      await show(page)
      await expectAccessible(page, `${path} ${show.toString()}`)
      await expectNothingForbidden()
    }
    await close()
  },
)

test('on a phone no page is wider than the screen, and the menu opens', async () => {
  const { page, open, close } = await visit({ viewport: { width: 390, height: 800 } })
  for (const path of paths()) {
    await open(path)
    const width = await page.locator('html').evaluate((html) => html.scrollWidth)
    expect(width, path).toBeLessThanOrEqual(390)
  }
  await expectAccessible(page, 'phone')
  await page.getByRole('button', { name: 'Menu' }).click()
  await page.getByRole('link', { name: 'Members' }).click()
  await page.getByRole('heading', { level: 1, name: 'Members' }).waitFor()
  await close()
})

test('a page that is left alone asks once in ten seconds, and not at all when its reader is away', async () => {
  const { page, open, watched, close } = await visit({ hasOwnClock: true })
  await open('projects')
  watched.calls.length = 0
  for (let minutePart = 0; minutePart < 6; minutePart++) {
    await page.clock.runFor(10_000)
    await sleep(200) // the answer comes in the time of the gateway
  }
  expect(watched.calls.length).toBeGreaterThanOrEqual(5)
  expect(watched.calls.length).toBeLessThanOrEqual(6)
  expect(new Set(watched.calls)).toEqual(new Set(['GET /v1/organization/me']))
  await page.clock.fastForward(300_000)
  watched.calls.length = 0
  await page.clock.runFor(60_000)
  expect(watched.calls).toEqual([])
  await close()
})

type Fetched = { status: number; headers: Record<string, unknown>; bytes: number; text: string }

/** As a browser sends it, without undoing the compression. */
const fetchRaw = (path: string, method = 'GET', headers: Record<string, string> = {}) =>
  new Promise<Fetched>((resolve, reject) => {
    const url = new URL(path, stack().description.base_url)
    request(url, { method, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const body = Buffer.concat(chunks)
        const { statusCode: status = 0 } = response
        resolve({ status, headers: response.headers, bytes: body.length, text: body.toString() })
      })
    })
      .on('error', reject)
      .end()
  })

const assetsOf = (html: string) =>
  [...html.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(([, path = '']) => path)

test('the first load is at most 200 KB, compressed ahead, and its files never change', async () => {
  const index = await fetchRaw('/console/')
  const assets = assetsOf(index.text)
  expect(assets.length).toBeGreaterThanOrEqual(3)
  let total = 0
  for (const path of ['/console/', ...assets]) {
    const { bytes, headers } = await fetchRaw(path, 'GET', { 'accept-encoding': 'gzip' })
    total += bytes
    if (path.endsWith('.js')) expect(headers['content-encoding']).toBe('gzip')
    if (path.includes('/assets/')) {
      expect(headers['cache-control']).toBe('public, max-age=31536000, immutable')
    }
    const brotli = await fetchRaw(path, 'GET', { 'accept-encoding': 'gzip, br' })
    expect(brotli.bytes, path).toBeLessThanOrEqual(bytes)
  }
  expect(total).toBeLessThan(200 * 1024)
  console.log(`The first load is ${(total / 1024).toFixed(0)} KB of gzip.`)
})

test('the index is never stored, cannot be framed, and answers every path below it', async () => {
  for (const path of ['/console/', '/console/projects/proj_1/keys', '/console/..%2f..%2fetc']) {
    const { status, headers, text } = await fetchRaw(path)
    expect([path, status, text.startsWith('<!doctype html>')]).toEqual([path, 200, true])
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': 'text/html; charset=utf-8',
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'") as string,
    })
    expect(headers['content-security-policy']).toContain("require-trusted-types-for 'script'")
  }
  expect((await fetchRaw('/console')).headers['location']).toBe('/console/')
  expect((await fetchRaw('/console/', 'HEAD')).status).toBe(200)
  expect((await fetchRaw('/console/x', 'POST')).status).toBe(405)
})

test.each(['index-00000000.js', '..%2f..%2frelease.json', '../index.html.br'])(
  '404: assets/%s is no file of the console',
  async (name) => {
    const { status, text } = await fetchRaw(`/console/assets/${name}`)
    // A browser resolves the dots by itself: what it asks for then is a page, and never a file that is not listed.
    if (name.startsWith('../')) expect(text.startsWith('<!doctype html>')).toBe(true)
    else expect([status, text.includes('route_not_found')]).toEqual([404, true])
  },
)
