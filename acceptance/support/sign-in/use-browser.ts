import { join } from 'node:path'

import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'

/** Debian's. */
const program = '/usr/bin/chromium'

/**
 * A real Chromium for a test file. Each page is one of a new profile, and its violations of the Content-Security-Policy fail the test file. With
 * SCREENSHOTS, a folder, `shoot` keeps what a page looks like.
 */
export function useBrowser() {
  let browser: Browser | undefined
  const violations: string[] = []
  beforeAll(async () => {
    // As root, Chromium has no sandbox; it only sees our own pages.
    const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']
    browser = await chromium.launch({ executablePath: program, args })
  })
  afterAll(async () => {
    await browser?.close()
    expect(violations).toEqual([])
  })
  return {
    async open(): Promise<Page> {
      if (!browser) throw new Error('The browser is not running yet.')
      const context = await browser.newContext({ viewport: { width: 800, height: 720 } })
      context.setDefaultTimeout(60_000)
      const page = await context.newPage()
      page.on('console', (message) => {
        if (message.text().includes('Content Security Policy')) violations.push(message.text())
      })
      page.on('pageerror', (error) => violations.push(error.message))
      return page
    },
    async shoot(page: Page, name: string) {
      const folder = process.env['SCREENSHOTS']
      if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
    },
  }
}
