import { openBrowser } from '@gatehouse/tools/console/open-browser'
import { seedOrganization } from '@gatehouse/tools/console/seed-organization'
import { consoleEnvironment, signIn } from '@gatehouse/tools/console/sign-in'
import type { Stack } from '@gatehouse/tools/start-stack'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'

import { useStack } from '#support/use-stack.ts'

type Visitor = Pick<BrowserContextOptions, 'colorScheme' | 'viewport'> & {
  /** Who has signed in; null: no person has. Default: the owner of the seeded organization. */
  as?: 'owner' | 'admin' | 'developer' | 'key' | null
  baseUrl?: string
  /** Time passes only when the test lets it. */
  hasOwnClock?: boolean
}

/** What a page of the console must never do, as far as it has done it. */
type Watched = { violations: string[]; foreign: string[]; errors: string[]; calls: string[] }

/** A stack with people, projects and keys, and real browsers that visit its console. */
export function useConsole() {
  const stack = useStack({ environment: consoleEnvironment })
  let browser: Browser
  let seeded: Awaited<ReturnType<typeof seedOrganization>>
  beforeAll(async () => {
    const { base_url: baseUrl, admin_key: adminKey } = stack().description
    ;[browser, seeded] = await Promise.all([openBrowser(), seedOrganization({ baseUrl, adminKey })])
  })
  afterAll(() => browser?.close())
  return {
    stack,
    seeded: () => seeded,
    visit: (visitor: Visitor = {}) => visit(browser, stack(), seeded.members, visitor),
  }
}

async function visit(
  browser: Browser,
  stack: Stack,
  members: Record<string, string>,
  visitor: Visitor,
) {
  const { as = 'owner', colorScheme = 'light', viewport = { width: 1280, height: 900 } } = visitor
  const { base_url, admin_key: adminKey } = stack.description
  const { baseUrl = base_url } = visitor
  const context = await browser.newContext({ colorScheme, viewport, locale: 'en-US' })
  const memberId = as === null || as === 'key' ? undefined : members[as]
  if (as !== null) {
    await signIn(context, { stack, baseUrl, adminKey, ...(memberId && { memberId }) })
  }
  await context.addInitScript({ content: recordInPage })
  const page = await context.newPage()
  if (visitor.hasOwnClock) await page.clock.install()
  const watched = watch(page, baseUrl)
  /** Opens a page of the console, and waits until it shows what it has read. */
  const open = async (path: string) => {
    watched.calls.length = 0
    await page.goto(`${baseUrl}/console/${path}`)
    await page.locator('main h1').waitFor()
    await expect.poll(() => page.locator('.loading').count()).toBe(0)
  }
  const expectNothingForbidden = async () => {
    watched.violations.push(...(await page.evaluate<string[]>('window.violations.splice(0)')))
    expect(watched).toMatchObject({ violations: [], foreign: [], errors: [] })
  }
  return { page, open, watched, expectNothingForbidden, close: () => context.close() }
}

function watch(page: Page, baseUrl: string): Watched {
  const watched: Watched = { violations: [], foreign: [], errors: [], calls: [] }
  page.on('request', (request) => {
    const { origin, pathname } = new URL(request.url())
    if (origin !== baseUrl) watched.foreign.push(request.url())
    else if (!pathname.startsWith('/console')) watched.calls.push(`${request.method()} ${pathname}`)
  })
  page.on('pageerror', (error) => watched.errors.push(error.message))
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted/.test(message.text())) {
      watched.violations.push(message.text())
    }
  })
  return watched
}

/** Runs in the page before anything else does. A text, because the tests have no DOM, and not its types. */
const recordInPage = `
  window.violations = []
  window.shift = 0
  document.addEventListener('securitypolicyviolation', (event) =>
    window.violations.push(event.violatedDirective + ' ' + event.blockedURI),
  )
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value
  }).observe({ type: 'layout-shift', buffered: true })`
