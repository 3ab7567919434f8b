import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { repositoryRoot as root } from '@gatehouse/tools/source-files'

const run = promisify(execFile)
const git = (...args: string[]) => run('git', ['-C', root, ...args])

/** The commit that a reference means, shortened; undefined if there is none. */
export async function findCommit(reference: string): Promise<string | undefined> {
  const found = await git('rev-parse', '--verify', '--short', `${reference}^{commit}`).catch(
    () => undefined,
  )
  return found?.stdout.trim()
}

/** Checks a commit out beside this working copy and installs its packages. Both go when the run ends, or is interrupted. */
export async function checkOut(commit: string, cleanup: AsyncDisposableStack): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'gatehouse-against-'))
  const folder = join(parent, commit)
  // Registered first: an interrupted checkout leaves an entry in the repository too.
  cleanup.defer(async () => {
    await git('worktree', 'remove', '--force', folder).catch(() => undefined)
    await rm(parent, { recursive: true, force: true })
    await git('worktree', 'prune')
  })
  await git('worktree', 'add', '--detach', folder, commit)
  const install = ['install', '--frozen-lockfile', '--ignore-scripts', '--reporter=silent']
  console.log(`Installing the packages of ${commit}`)
  // What this working copy has installed is in the store already; a registry is asked only for the rest.
  await run('pnpm', [...install, '--offline'], { cwd: folder }).catch(() =>
    run('pnpm', install, { cwd: folder }),
  )
  return folder
}
