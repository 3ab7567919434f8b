import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
/** Which projects of vitest.config.ts each ring has, one after the other. */
const rings: Record<string, readonly string[]> = {
  unit: ['unit'],
  integration: ['integration'],
  acceptance: ['acceptance', 'patient'],
}

type Totals = { passed: number; failed: number; skipped: number }

/** `./dev test [ring] [vitest arguments]`; without a ring all of them run, the quick ones first. */
async function run(args: readonly string[]): Promise<number> {
  const [first = ''] = args
  const ring = rings[first]
  const [chosen, rest] = ring ? [ring, args.slice(1)] : [Object.values(rings).flat(), args]
  const totals: Totals = { passed: 0, failed: 0, skipped: 0 }
  let exitCode = 0
  for (const project of chosen) exitCode ||= await runProject(project, rest, totals)
  const { passed, failed, skipped } = totals
  console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  return exitCode
}

async function runProject(
  project: string,
  rest: readonly string[],
  totals: Totals,
): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-test-'))
  const file = join(folder, 'results.json')
  try {
    console.log(`\n-- ${project}`)
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
    // A file that is asked for by name is in one project of its ring only.
    const named = rest.length > 0 ? ['--passWithNoTests'] : []
    const code = await vitest(['run', '--project', project, ...reporters, ...named, ...rest])
    addResults(totals, await readFile(file, 'utf8').catch(() => '{}'))
    return code
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function addResults(totals: Totals, text: string) {
  const results = JSON.parse(text) as Record<string, number | undefined>
  totals.passed += results['numPassedTests'] ?? 0
  totals.failed += results['numFailedTests'] ?? 0
  totals.skipped += (results['numPendingTests'] ?? 0) + (results['numTodoTests'] ?? 0)
}

function vitest(args: readonly string[]): Promise<number> {
  return new Promise((resolve) => {
    spawn('vitest', args, { cwd: root, stdio: 'inherit' })
      .on('close', (code) => resolve(code ?? 1))
      .on('error', () => resolve(1))
  })
}

process.exitCode = await run(process.argv.slice(2))
