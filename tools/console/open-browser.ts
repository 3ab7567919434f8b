import { existsSync } from 'node:fs'

import { type Browser, chromium } from 'playwright-core'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Debian's Chromium, or the one that CHROMIUM names. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = process.env['CHROMIUM'] ?? places.find((path) => existsSync(path))
  if (executablePath === undefined) {
    throw new Error(
      'There is no Chromium on this machine: install it, or set CHROMIUM to its path.',
    )
  }
  // Its sandbox does not work for root, as which containers run tests.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return chromium.launch({ executablePath, args: [...args, '--disable-dev-shm-usage'] })
}
