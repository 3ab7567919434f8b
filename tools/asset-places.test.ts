import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { listSourceFiles, repositoryRoot } from './source-files.ts'

// The build puts all modules into one folder: a file that is found relative to a source file is somewhere else there.

/** One knows both places; the other loads a package. */
const allowed = ['service/src/platform/assets.ts', 'service/src/text/re2-engine.ts']

test('files of the service are found through platform/assets.ts only', async () => {
  const sources = await listSourceFiles()
  const ours = sources.filter((path) => /^(contract|service|cli)\/src\//.test(path))
  const shipped = ours.filter((path) => !path.includes('/testing/'))
  expect(shipped.length).toBeGreaterThan(500)
  const found: string[] = []
  for (const path of shipped) {
    const text = await readFile(join(repositoryRoot, path), 'utf8')
    if (/import\.meta\.(url|dirname|filename)/.test(text)) found.push(path)
  }
  expect(found).toEqual(allowed)
})
