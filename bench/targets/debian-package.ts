import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import { Unavailable } from './target.ts'

const run = promisify(execFile)

/** Installs a program's Debian package if the program is missing. */
export async function ensureProgram(program: string, packageName: string) {
  if (await exists(program)) return
  console.log(`Installing the package ${packageName} …`)
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, timeout: 120_000 }
  const install = ['install', '-y', '--no-install-recommends', packageName]
  try {
    await run('apt-get', install, options).catch(async () => {
      await run('apt-get', ['update'], options)
      await run('apt-get', install, options)
    })
  } catch (cause) {
    throw new Unavailable(`${program} is not installed and apt-get could not install it.`, {
      cause,
    })
  }
}

function exists(program: string): Promise<boolean> {
  return run('sh', ['-c', `command -v ${program}`]).then(
    () => true,
    () => false,
  )
}
