import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { buildProgram } from '@gatehouse/tools/build/build-program'
import { runScript } from '@gatehouse/tools/run-script'
import { startProcess } from '@gatehouse/tools/service-process'
import { repositoryRoot } from '@gatehouse/tools/source-files'

/** A later release: this one with further migrations. */
export async function makeRelease(migrations: Readonly<Record<string, string>>) {
  const scratch = join(repositoryRoot, '.scratch')
  await mkdir(scratch, { recursive: true })
  const folder = await mkdtemp(join(scratch, 'release-'))
  await buildProgram(folder)
  for (const [name, text] of Object.entries(migrations)) {
    await writeFile(join(folder, 'migrations', name), text)
  }
  const file = join(folder, 'gatehouse.mjs')
  return {
    migrate: (environment: Record<string, string>) => runScript([file, 'migrate'], { environment }),
    startApi: (environment: Record<string, string>, logFile: string) =>
      startProcess({ file, environment: { ...environment, ROLES: 'api' }, logFile }),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}
