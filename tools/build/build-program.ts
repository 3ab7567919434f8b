import { chmod, cp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { runScript } from '../run-script.ts'
import { repositoryRoot as root } from '../source-files.ts'
import { bundle } from './bundle.ts'
import { programs, testPrograms } from './entries.ts'
import { describeLicences } from './licences.ts'
import { describePackage, describeRelease } from './manifests.ts'

type Entries = Readonly<Record<string, string>>

/** Builds what ships into a folder, in place of what is there. */
export async function buildProgram(folder: string, { hasMaps = true } = {}) {
  const unfinished = `${folder}.new`
  const modules = await buildInto(unfinished, programs, hasMaps)
  modules.push(...(await buildConsole(join(unfinished, 'console'))))
  await chmod(join(unfinished, 'gatehouse.mjs'), 0o755)
  await writeFile(join(unfinished, 'package.json'), await describePackage())
  await writeFile(join(unfinished, 'release.json'), await describeRelease())
  await cp(join(root, 'LICENSE'), join(unfinished, 'LICENSE'))
  await cp(join(root, 'docs/third-party-notices.md'), join(unfinished, 'NOTICES.md'))
  await writeFile(join(unfinished, 'LICENSES-OF-PACKAGES.txt'), await describeLicences(modules))
  await rm(folder, { recursive: true, force: true })
  await rename(unfinished, folder)
}

export const buildTestPrograms = (folder: string) => buildInto(folder, testPrograms, true)

/** Returns the modules that were bundled. */
async function buildConsole(folder: string): Promise<string[]> {
  const environment = { NODE_ENV: 'production', PATH: process.env['PATH'] }
  const script = ['tools/build/build-console.ts', folder]
  return JSON.parse(await runScript(script, { environment })) as string[]
}

async function buildInto(folder: string, entries: Entries, hasMaps: boolean) {
  await rm(folder, { recursive: true, force: true })
  const modules = await bundle(entries, { folder, hasMaps })
  for (const name of ['assets', 'migrations']) {
    await cp(join(root, 'service', name), join(folder, name), { recursive: true })
  }
  await runScript(['service/build/pack-ranks.ts', join(folder, 'ranks')], { environment: {} })
  // The tables are made of the ranks in this package.
  return [...modules, join(root, 'service/node_modules/js-tiktoken/package.json')]
}
