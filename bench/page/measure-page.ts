import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { Figures } from '../budget/goals.ts'
import { toTable } from '../table.ts'
import { ensureProgram } from '../targets/debian-package.ts'
import type { Target } from '../targets/target.ts'
import { servePage, type Shown } from './page-server.ts'

// What a person sees: a page in Chromium shows the text of a stream as it comes. No program drives the browser: the page measures
// itself, frame by frame of the screen, and reports.

const frames = 300
const paceMs = 20
const patienceMs = 60_000

type Options = {
  bare: Target
  gatehouse: Target
  remote: Target
  folder: string
  plan: { rounds: number }
}
type Round = { changes: number; longestGapMs: number; firstTextMs: number }

/** The longest time for which the page stood still, behind each target. The first round of each warms it up. */
export async function measurePage({ folder, plan, ...targets }: Options): Promise<Figures> {
  await ensureProgram('chromium', 'chromium')
  const all = [targets.bare, targets.gatehouse, targets.remote]
  const rounds = all.map((): Round[] => [])
  for (let round = 0; round <= plan.rounds; round++) {
    for (const [index, target] of all.entries()) {
      const shown = await show(target, folder)
      if (round > 0) rounds[index]?.push(read(shown))
    }
  }
  const heading = ['page in Chromium', 'changes', 'longest gap ms', 'first text ms']
  const most = (own: readonly Round[], part: keyof Round) =>
    Math.max(...own.map((round) => round[part]))
  const rows = all.map(({ name }, index) => {
    const own = rounds[index] ?? []
    const least = Math.min(...own.map(({ changes }) => changes))
    return [
      name,
      String(least),
      most(own, 'longestGapMs').toFixed(0),
      most(own, 'firstTextMs').toFixed(0),
    ]
  })
  console.log(`\n${toTable([heading, ...rows])}`)
  const gapOf = (own: readonly Round[] = []) => ({ value: most(own, 'longestGapMs') })
  return { pageGap: gapOf(rounds[1]), remotePageGap: gapOf(rounds[2]) }
}

function read({ sentAt, changes }: Shown): Round {
  const [first = NaN] = changes
  const gaps = changes.slice(1).map((at, index) => at - (changes[index] ?? NaN))
  return {
    changes: changes.length,
    longestGapMs: Math.max(...gaps),
    firstTextMs: first - sentAt,
  }
}

let shownSoFar = 0

/** Words that were never said before, where the scorer would know them. */
function bodyFor({ isFresh = false }: Target): string {
  const number = ++shownSoFar + Date.now()
  const words = Array.from({ length: frames }, (_, index) => `w${number % 100_000}x${index}`)
  const script = { ...(isFresh ? { text: words.join(' ') } : { tokens: frames }), paceMs }
  return JSON.stringify({
    model: 'gpt-scripted',
    messages: [{ role: 'user', content: `Go on.\n#script ${JSON.stringify(script)}` }],
    max_completion_tokens: frames,
    stream: true,
  })
}

async function show(target: Target, folder: string): Promise<Shown> {
  const page = await servePage(target, bodyFor(target))
  const profile = await mkdtemp(join(folder, 'chromium-'))
  const browser = openBrowser(page.url, profile)
  try {
    return await Promise.race([page.shown, failureOf(browser)])
  } finally {
    page.stop()
    await end(browser)
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** A page in the background would be drawn less often. As root, Chromium has no sandbox; it only sees our own page. */
const openBrowser = (url: string, profile: string) =>
  spawn(
    'chromium',
    [
      '--headless=new',
      '--no-sandbox',
      '--no-first-run',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-background-networking',
      `--user-data-dir=${profile}`,
      url,
    ],
    { stdio: 'ignore' },
  )

function failureOf(browser: ChildProcess): Promise<never> {
  return new Promise((_, reject) => {
    const late = setTimeout(() => reject(new Error('The page did not report.')), patienceMs)
    browser.once('error', reject)
    browser.once('exit', (code) => {
      clearTimeout(late)
      reject(new Error(`Chromium ended with ${code}.`))
    })
  })
}

async function end(browser: ChildProcess) {
  if (browser.exitCode !== null || browser.pid === undefined) return
  const ended = new Promise((resolve) => browser.once('exit', resolve))
  browser.kill('SIGKILL')
  await ended
}
