import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { Browser, Page } from 'playwright-core'

import { useBuiltProgram } from '../program.ts'
import { repositoryRoot } from '../source-files.ts'
import { startStack } from '../start-stack.ts'
import { openBrowser } from './open-browser.ts'
import { seedOrganization } from './seed-organization.ts'
import { consoleEnvironment, signIn } from './sign-in.ts'

// Pictures of every page of the console, for a person to look at.

const folder = join(repositoryRoot, '.scratch/console-shots')

type Shot = { name: string; path: string; show?: (page: Page) => Promise<unknown> }

const press = (name: string) => (page: Page) => page.getByRole('button', { name }).first().click()

const shotsOf = (projectId: string): Shot[] => [
  { name: 'projects', path: 'projects' },
  { name: 'project-new', path: 'projects', show: press('New project') },
  { name: 'project', path: `projects/${projectId}` },
  { name: 'project-limits', path: `projects/${projectId}`, show: press('Edit limits') },
  { name: 'keys', path: `projects/${projectId}/keys` },
  { name: 'key-new', path: `projects/${projectId}/keys`, show: press('New key') },
  { name: 'key-secret', path: `projects/${projectId}/keys`, show: makeKey },
  { name: 'key-revoke', path: `projects/${projectId}/keys`, show: press('Revoke') },
  { name: 'project-members', path: `projects/${projectId}/members` },
  { name: 'members', path: 'members' },
  { name: 'member-invite', path: 'members', show: press('Invite member') },
  { name: 'roles', path: 'roles' },
  { name: 'admin-keys', path: 'keys' },
  { name: 'account', path: 'account' },
  { name: 'palette', path: 'projects', show: (page) => page.keyboard.press('Control+k') },
  { name: 'shortcuts', path: 'projects', show: (page) => page.keyboard.press('?') },
  { name: 'menu', path: 'projects', show: (page) => page.locator('summary').click() },
  { name: 'unknown', path: 'no/such/page' },
]

async function makeKey(page: Page) {
  await press('New key')(page)
  await page.getByLabel('Name').fill('search-production')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByText('shown only here').waitFor()
}

const looks = [
  { name: 'light', colorScheme: 'light', width: 1280 },
  { name: 'dark', colorScheme: 'dark', width: 1280 },
  { name: 'phone', colorScheme: 'light', width: 390 },
] as const

type Place = { baseUrl: string; projectId: string; start: (browser: Browser) => SignedIn }
type SignedIn = (look: (typeof looks)[number]) => Promise<Page>

async function takeAll(browser: Browser, { baseUrl, projectId, start }: Place) {
  const open = start(browser)
  for (const look of looks) {
    const page = await open(look)
    for (const { name, path, show } of shotsOf(projectId)) {
      await page.goto(`${baseUrl}/console/${path}`)
      await page.locator('h1').waitFor()
      await page.waitForLoadState('networkidle')
      await show?.(page)
      await page.waitForTimeout(150)
      await page.screenshot({ path: join(folder, `${name}-${look.name}.png`), fullPage: true })
    }
    await page.context().close()
  }
}

export async function takeShots() {
  await useBuiltProgram()
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const stack = await startStack({ environment: consoleEnvironment })
  const { base_url: baseUrl, admin_key: adminKey } = stack.description
  const browser = await openBrowser()
  try {
    const { members, projectId } = await seedOrganization({ baseUrl, adminKey })
    const start =
      (opened: Browser): SignedIn =>
      async ({ colorScheme, width }) => {
        const context = await opened.newContext({ colorScheme, viewport: { width, height: 860 } })
        const memberId = members['owner'] ?? ''
        await signIn(context, { stack, baseUrl, adminKey, memberId })
        return context.newPage()
      }
    await takeAll(browser, { baseUrl, projectId, start })
    console.log(`The pictures are in ${folder}`)
  } finally {
    await browser.close()
    await stack.stop()
  }
}
