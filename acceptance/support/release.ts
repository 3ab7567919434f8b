import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

import { runScript } from '@gatehouse/tools/run-script'
import { startProcess } from '@gatehouse/tools/service-process'

const root = fileURLToPath(new URL('../../', import.meta.url))
const service = join(root, 'service')

/** A later release: a copy of the service that has these migrations in addition. */
export async function makeRelease(migrations: Readonly<Record<string, string>>) {
  const scratch = join(root, '.scratch')
  await mkdir(scratch, { recursive: true })
  const folder = await mkdtemp(join(scratch, 'release-'))
  for (const part of ['src', 'migrations', 'package.json']) {
    await cp(join(service, part), join(folder, part), { recursive: true })
  }
  await symlink(join(service, 'node_modules'), join(folder, 'node_modules'))
  for (const [name, text] of Object.entries(migrations)) {
    await writeFile(join(folder, 'migrations', name), text)
  }
  return {
    migrate: (environment: Record<string, string>) =>
      runScript([join(folder, 'src/migrate.ts')], { environment }),
    startApi: (environment: Record<string, string>, logFile: string) =>
      startProcess({
        entry: relative(join(service, 'src'), join(folder, 'src/main.ts')),
        environment: { ...environment, ROLES: 'api' },
        logFile,
      }),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}
