import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { repositoryRoot as root } from './source-files.ts'

// Which files tests, stacks and measurements start: what ships, built when its sources have changed, or the sources.

const builtFolder = join(root, 'dist')
const testProgramsFolder = join(root, '.scratch/test-programs')
/** Says from which sources both folders were built. */
const stampFile = join(root, 'node_modules/.cache/gatehouse-built-from')

/** Set in the environment, because test files and scripts run in processes of their own. */
const builtVariable = 'GATEHOUSE_BUILT'
const sourcesVariable = 'GATEHOUSE_SOURCES'

const sources: Record<string, string> = {
  gatehouse: 'program/gatehouse.ts',
  'limited-main': 'service/src/testing/limited-main.ts',
  'many-tenants': 'service/src/testing/many-tenants.ts',
}

export const isBuilt = () => process.env[builtVariable] === '1'

/** The file of the command `gatehouse`, or of a program of the tests. */
export function programFile(name: string): string {
  if (!isBuilt()) return join(root, sources[name] ?? name)
  return join(name === 'gatehouse' ? builtFolder : testProgramsFolder, `${name}.mjs`)
}

/** Everything that is started from now on is what `./dev build` makes, unless somebody asked for the sources. */
export async function useBuiltProgram() {
  if (process.env[sourcesVariable] === '1') return
  const { buildProgram, buildTestPrograms } = await import('./build/build-program.ts')
  const stamp = await describeSources()
  const built = await readFile(stampFile, 'utf8').catch(() => '')
  const isThere = await stat(join(builtFolder, 'gatehouse.mjs')).catch(() => undefined)
  if (stamp !== built || !isThere) {
    await buildProgram(builtFolder)
    await buildTestPrograms(testProgramsFolder)
    await mkdir(dirname(stampFile), { recursive: true })
    await writeFile(stampFile, stamp)
  }
  process.env[builtVariable] = '1'
}

/** For whoever needs the sources of what runs, such as a profile by part. */
export const useSources = () => (process.env[sourcesVariable] = '1')

const builtFrom = ['contract', 'service', 'cli', 'program', 'tools/build', 'pnpm-lock.yaml']

async function describeSources(): Promise<string> {
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
  return hash.digest('hex')
}
