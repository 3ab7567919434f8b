import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { replaceFile } from '#platform/trusted-file.ts'

import { codeOf } from './explain-directory.ts'

/** The file that says which database a directory belongs to: one line with the id of that database. */
const markName = 'database'

/**
 * Marks a directory that has no mark. Returns the id in its mark, which is another one if the directory belongs to another
 * database. Of two databases that mark it in the same moment the last one keeps it, and the other one finds out at its next look.
 */
export async function claimDirectory(directory: string, databaseId: string): Promise<string> {
  const marked = await readMark(directory)
  if (marked !== undefined) return marked
  await replaceFile(join(directory, markName), [Buffer.from(`${databaseId}\n`)])
  return databaseId
}

async function readMark(directory: string): Promise<string | undefined> {
  try {
    const text = (await readFile(join(directory, markName), 'utf8')).trim()
    return /^[0-9a-f-]{36}$/.test(text) ? text : 'no database that could be read'
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
