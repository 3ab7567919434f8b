import { mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

import { codeOf } from './explain-directory.ts'

/**
 * Creates the directory and those above it. Not with the option `recursive`: in /proc Node repeats that for ever, in a
 * thread that no signal ends.
 */
export async function makeDirectory(directory: string): Promise<void> {
  const path = resolve(directory)
  if (await makeOne(path)) return
  await makeDirectory(dirname(path))
  // Its parent is there now. Where that does not help, the file system has no place for files.
  if (!(await makeOne(path)))
    throw Object.assign(new Error('no such directory'), { code: 'ENOENT' })
}

/** False if the directory above it is missing. */
async function makeOne(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 })
    return true
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' && dirname(path) !== path) return false
    if (code !== 'EEXIST' || !(await stat(path)).isDirectory()) throw error
    return true
  }
}
