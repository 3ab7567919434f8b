import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'

/** Every file in a folder and its subfolders, by its path from there. */
export async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map(({ parentPath, name }) => relative(folder, join(parentPath, name))).toSorted()
}
