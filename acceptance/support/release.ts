import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { programFile } from '@gatehouse/tools/program'
import { runScript } from '@gatehouse/tools/run-script'
import { startProcess } from '@gatehouse/tools/service-process'
import { repositoryRoot } from '@gatehouse/tools/source-files'

/** A later release: a copy of what ships that has these migrations in addition. */
export async function makeRelease(migrations: Readonly<Record<string, string>>) {
  const scratch = join(repositoryRoot, '.scratch')
  await mkdir(scratch, { recursive: true })
  const folder = await mkdtemp(join(scratch, 'release-'))
  await cp(dirname(programFile('gatehouse')), folder, { recursive: true })
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
