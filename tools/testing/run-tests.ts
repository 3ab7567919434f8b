import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type Totals, totalsVariable } from './totals-reporter.ts'

/** Which projects of vitest.config.ts each ring has. */
export type Rings = Record<string, readonly string[]>

type Options = { root: string; rings: Rings; write?: (text: string) => void }

/**
 * `[--long] [ring] [vitest arguments]`. Without a ring all of them run, in the order they are written, also after
 * one has failed: a run shows everything that is broken. Returns the exit code.
 */
export async function runTests(args: readonly string[], options: Options): Promise<number> {
  const { rings, write = console.log } = options
  const isLong = args.includes('--long')
  const [first = '', ...others] = args.filter((each) => each !== '--long')
  const ring = rings[first]
  const chosen = ring ? { [first]: ring } : rings
  const further = ring ? others : [first, ...others].filter((each) => each !== '')
  const all: Totals = { passed: 0, failed: 0, skipped: 0, errors: [] }
  let exitCode = 0
  for (const [name, projects] of Object.entries(chosen)) {
    write(`\n-- ${name}`)
    const { code, totals } = await runVitest({ ...options, projects, further, isLong })
    if (code !== 0 || totals.errors.length > 0) exitCode ||= code || 1
    all.passed += totals.passed
    all.failed += totals.failed
    all.skipped += totals.skipped
    all.errors.push(...totals.errors.map((error) => `${name}: ${error}`))
  }
  if (all.errors.length > 0) {
    write(`\nErrors outside of tests: ${all.errors.length}. They fail the run.`)
    for (const error of all.errors.toSorted()) write(`  ${error.split('\n')[0]}`)
  }
  write(`\n${all.passed} passed, ${all.failed} failed${skippedText(all)}`)
  return exitCode
}

const skippedText = ({ skipped }: Totals) => (skipped > 0 ? `, ${skipped} skipped` : '')

type Run = {
  root: string
  projects: readonly string[]
  further: readonly string[]
  isLong: boolean
}

async function runVitest({ root, projects, further, isLong }: Run) {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-test-'))
  const file = join(folder, 'totals.json')
  const environment = { ...process.env, [totalsVariable]: file, ...(isLong && { LONG_TESTS: '1' }) }
  const chosen = projects.map((project) => `--project=${project}`)
  // A file that is named may be in one ring, or in one project of its ring, only.
  const named = further.length > 0 ? ['--passWithNoTests'] : []
  try {
    const code = await spawnVitest(['run', ...chosen, ...named, ...further], root, environment)
    const text = await readFile(file, 'utf8').catch(() => undefined)
    const none = { passed: 0, failed: 0, skipped: 0, errors: ['vitest reported no totals'] }
    return { code, totals: text === undefined ? none : (JSON.parse(text) as Totals) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function spawnVitest(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
  return new Promise<number>((resolve) => {
    spawn('vitest', args, { cwd, env, stdio: 'inherit' })
      .on('close', (code) => resolve(code ?? 1))
      .on('error', () => resolve(1))
  })
}
