import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { replaceFile } from '#platform/trusted-file.ts'

import { codeOf } from './explain-directory.ts'

/** The file that says which database a directory belongs to: one line with the id of that database. */
const markName = 'database'

/** Of two databases that mark a directory in the same moment the last one keeps it, and the other one finds out at its next look. */
export const markDirectory = (directory: string, databaseId: string) =>
  replaceFile(join(directory, markName), [Buffer.from(`${databaseId}\n`)])

/** The id of the database that the directory belongs to; undefined if it has no mark. */
export async function readMark(directory: string): Promise<string | undefined> {
  try {
    const text = (await readFile(join(directory, markName), 'utf8')).trim()
    return /^[0-9a-f-]{36}$/.test(text) ? text : 'no database that could be read'
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
