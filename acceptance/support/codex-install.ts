import { execFile } from 'node:child_process'
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

// Codex is too large to be a dependency of ours: whoever runs its tests fetches it once.

const version = '0.166.0'
const scratch = fileURLToPath(new URL('../../.scratch', import.meta.url))
const installMaxMs = 240_000

/** Codex's program, to be run by Node; or why there is none. */
export type Codex = { program: string } | { reason: string }

/** Finds Codex in the scratch folder, or installs exactly the version we test with. */
export async function installCodex(): Promise<Codex> {
  const folder = join(scratch, `codex-${version}`)
  const program = join(folder, 'node_modules/@openai/codex/bin/codex.js')
  try {
    if (!(await exists(program))) await install(folder)
    // Its native part is an optional package, which an installer may pass over without a word.
    const { stdout } = await run(process.execPath, [program, '--version'])
    if (stdout.trim() === `codex-cli ${version}`) return { program }
    return { reason: `Codex says that it is ${stdout.trim()}.` }
  } catch (error) {
    const [failed, why = ''] = String(error).split('\n')
    return { reason: `Codex ${version} cannot be installed or run here. ${failed} ${why}` }
  }
}

const run = promisify(execFile)

const exists = (file: string) =>
  access(file).then(
    () => true,
    () => false,
  )

/** Under another name first, so that half an installation is never taken for a whole one. */
async function install(folder: string) {
  await mkdir(scratch, { recursive: true })
  const fresh = await mkdtemp(`${folder}-`)
  try {
    const quiet = [
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      '--fetch-retries=1',
      '--loglevel=error',
    ]
    const args = ['install', '--prefix', fresh, ...quiet, '--save-exact']
    await run('npm', [...args, `@openai/codex@${version}`], { timeout: installMaxMs })
    await rename(fresh, folder)
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}
