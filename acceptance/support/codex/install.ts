import { execFile } from 'node:child_process'
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

// Codex is too large to be a dependency, so its tests install it once into the scratch folder.

const version = '0.166.0'
const scratch = fileURLToPath(new URL('../../../.scratch', import.meta.url))
const installMaxMs = 240_000

/** The path of Codex's script for Node, or the reason why there is none. */
export type Codex = { program: string } | { reason: string }

/** Finds Codex in the scratch folder, or installs exactly the version we test with. */
export async function installCodex(): Promise<Codex> {
  const folder = join(scratch, `codex-${version}`)
  const program = join(folder, 'node_modules/@openai/codex/bin/codex.js')
  try {
    if (!(await exists(program))) await install(folder)
    // Its native binary is an optional package, which npm may skip silently.
    const { stdout } = await run(process.execPath, [program, '--version'])
    if (stdout.trim() === `codex-cli ${version}`) return { program }
    return { reason: `Codex reports the version ${stdout.trim()}.` }
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

/** Installs into a temporary folder and renames it, so that a partial installation is never used. */
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
