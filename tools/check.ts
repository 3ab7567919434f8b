import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { readOptions } from './help/read-options.ts'

const root = fileURLToPath(new URL('../', import.meta.url))

/** Name and command of each check; the quick ones first, so that simple mistakes show early. */
const checks: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ['format', 'oxfmt', '--check', '.'],
  ['types', 'tsc', '-p', '.'],
  ['types of the console', 'tsc', '-p', 'console'],
  ['lint', 'oxlint', '--type-aware', '--deny-warnings'],
  ['dead code', 'knip', '--no-progress'],
  ['generated files', 'node', 'tools/generate.ts', '--check'],
  ['unit tests', 'vitest', 'run', '--project=unit', '--project=unit-alone', '--reporter=dot'],
]

function runCheck([name, command, ...args]: (typeof checks)[number]) {
  const startedAt = performance.now()
  return new Promise<boolean>((resolve) => {
    const output: Buffer[] = []
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => output.push(chunk))
    child.on('error', (error) => output.push(Buffer.from(`${error.message}\n`)))
    child.on('close', (code) => {
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
      console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`)
      if (code !== 0) process.stdout.write(Buffer.concat(output))
      resolve(code === 0)
    })
  })
}

/** Runs all checks even if one fails, to show everything that is wrong. */
async function run(chosen: typeof checks): Promise<number> {
  let failures = 0
  for (const check of chosen) if (!(await runCheck(check))) failures++
  console.log(
    failures === 0 ? 'All checks passed.' : `${failures} of ${chosen.length} checks failed.`,
  )
  return failures === 0 ? 0 : 1
}

// For .ci/run, which runs all tests separately, and for a new development container.
const options = { 'without-tests': { type: 'boolean' } } as const
const isWithoutTests = readOptions('check', { options }).values['without-tests'] ?? false
process.exitCode = await run(checks.filter(([name]) => !isWithoutTests || name !== 'unit tests'))
