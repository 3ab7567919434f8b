import { execFile } from 'node:child_process'
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

// Coding agents are too large to be dependencies, so their tests install them once into the scratch folder.

const scratch = fileURLToPath(new URL('../../.scratch', import.meta.url))
const installMaxMs = 240_000

export type PublishedClient = {
  name: string
  package: string
  version: string
  /** Its script for Node, inside the package. */
  script: string
  /** What `--version` prints. */
  prints: string
}

/** The path of a client's script for Node, or the reason why there is none. */
export type InstalledClient = { program: string } | { reason: string }

/** Finds a client in the scratch folder, or installs exactly the version we test with. */
export async function installClient(client: PublishedClient): Promise<InstalledClient> {
  const { name, version, prints } = client
  const folder = join(scratch, `${name.toLowerCase().replaceAll(' ', '-')}-${version}`)
  const program = join(folder, 'node_modules', client.package, client.script)
  try {
    if (!(await exists(program))) await install(client, folder)
    // Its native binary is an optional package, which npm may skip silently.
    const { stdout } = await run(process.execPath, [program, '--version'])
    if (stdout.trim() === prints) return { program }
    return { reason: `${name} reports the version ${stdout.trim()}.` }
  } catch (error) {
    const [failed, why = ''] = String(error).split('\n')
    return { reason: `${name} ${version} cannot be installed or run here. ${failed} ${why}` }
  }
}

const run = promisify(execFile)

const exists = (file: string) =>
  access(file).then(
    () => true,
    () => false,
  )

/** Installs into a temporary folder and renames it, so that a partial installation is never used. */
async function install({ package: name, version }: PublishedClient, folder: string) {
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
    await run('npm', [...args, `${name}@${version}`], { timeout: installMaxMs })
    await rename(fresh, folder)
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}
