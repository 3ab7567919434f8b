import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { noTests, type Totals, totalsVariable } from './totals-reporter.ts'

export type VitestRun = {
  root: string
  /** Those of vitest.config.ts. */
  projects: readonly string[]
  /** Further arguments, such as the names of files. */
  further: readonly string[]
  environment: NodeJS.ProcessEnv
}

/** Runs vitest once, with its output on this terminal. */
export async function runVitest({ root, projects, further, environment }: VitestRun) {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-test-'))
  const file = join(folder, 'totals.json')
  const variables = { ...process.env, ...environment, [totalsVariable]: file }
  const chosen = projects.map((project) => `--project=${project}`)
  // A file that is named may be in one ring, or in one project of its ring, only.
  const named = further.length > 0 ? ['--passWithNoTests'] : []
  try {
    const code = await spawnVitest(['run', ...chosen, ...named, ...further], root, variables)
    const text = await readFile(file, 'utf8').catch(() => undefined)
    const none = { ...noTests(), errors: [{ message: 'vitest reported no totals' }] }
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
