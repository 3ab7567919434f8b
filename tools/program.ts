import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

import { programs, testPrograms } from './build/entries.ts'
import { repositoryRoot as root } from './source-files.ts'

// Which files tests, stacks and measurements start: what ships, or the sources. What ships is built into a folder that is named
// after its sources, so that a run keeps its program when somebody changes them and starts another run.

const builds = join(root, '.scratch/built')
const keptMs = 24 * 60 * 60 * 1000

/** The folder of the build, in the environment: test files and scripts run in processes of their own. */
const builtVariable = 'GATEHOUSE_BUILT'
/** What makes `useBuiltProgram` keep to the sources, here and in processes that are started with it. */
export const fromSources = { GATEHOUSE_SOURCES: '1' }

const sources: Record<string, string> = { ...testPrograms, gatehouse: programs.gatehouse }

const builtFolder = () => process.env[builtVariable] ?? ''
export const isBuilt = () => builtFolder() !== ''

/** The file of the command `gatehouse`, or of a program of the tests. */
export function programFile(name: string): string {
  if (!isBuilt()) return join(root, sources[name] ?? name)
  return join(builtFolder(), name === 'gatehouse' ? 'dist' : 'tests', `${name}.mjs`)
}

/** Everything that is started from now on is what `./dev build` makes, unless somebody asked for the sources. */
export async function useBuiltProgram() {
  if (process.env['GATEHOUSE_SOURCES'] === fromSources.GATEHOUSE_SOURCES) return
  const folder = join(builds, await nameSources())
  if (!(await exists(folder))) await build(folder)
  process.env[builtVariable] = folder
}

/** A profile by part needs the sources: its parts are their folders. */
export const useSources = () => Object.assign(process.env, fromSources)

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

/** Of two builds at the same time, the first to finish is kept. */
async function build(folder: string) {
  const { buildProgram, buildTestPrograms } = await import('./build/build-program.ts')
  await mkdir(builds, { recursive: true })
  await removeOld()
  const unfinished = await mkdtemp(join(builds, 'unfinished-'))
  await buildProgram(join(unfinished, 'dist'))
  await buildTestPrograms(join(unfinished, 'tests'))
  await rename(unfinished, folder).catch(async (error: unknown) => {
    await rm(unfinished, { recursive: true, force: true })
    if (!(await exists(folder))) throw error
  })
}

async function removeOld() {
  for (const name of await readdir(builds)) {
    const { mtimeMs } = await stat(join(builds, name))
    if (Date.now() - mtimeMs > keptMs)
      await rm(join(builds, name), { recursive: true, force: true })
  }
}

const builtFrom = [
  'contract',
  'service',
  'cli',
  'console',
  'program',
  'tools/build',
  'tools/console',
  'pnpm-lock.yaml',
]

async function nameSources(): Promise<string> {
  const { describeRelease } = await import('./build/manifests.ts')
  const hash = createHash('sha256').update(await describeRelease())
  for (const part of builtFrom) {
    const names = await readdir(join(root, part), { recursive: true }).catch(() => [''])
    for (const name of names.toSorted()) {
      if (name.includes('node_modules')) continue
      const { size, mtimeMs } = await stat(join(root, part, name))
      hash.update(`${part}/${name} ${size} ${mtimeMs}\n`)
    }
  }
  return hash.digest('hex').slice(0, 16)
}
