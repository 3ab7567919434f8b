import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repositoryRoot = fileURLToPath(new URL('../', import.meta.url))

const workspaces = [
  'contract',
  'service',
  'cli',
  'console',
  'program',
  'acceptance',
  'bench',
  'tools',
]

/** Every TypeScript file of the workspaces, by its path from the root; tests only with `hasTests`. */
export async function listSourceFiles({ hasTests = false } = {}): Promise<string[]> {
  const lists = await Promise.all(
    workspaces.map(async (workspace) => {
      const names = await readdir(join(repositoryRoot, workspace), { recursive: true })
      return names.map((name) => `${workspace}/${name}`)
    }),
  )
  return lists
    .flat()
    .filter((path) => /\.tsx?$/.test(path) && !path.includes('node_modules/'))
    .filter((path) => hasTests || !/\.test\.tsx?$/.test(path))
    .toSorted()
}
