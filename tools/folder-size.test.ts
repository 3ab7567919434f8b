import { dirname } from 'node:path'

import { expect, test } from 'vitest'

import { listSourceFiles } from './source-files.ts'

const filesMax = 20
/** These have one noun per file; splitting them would only add a level. */
const exceptions: Record<string, number> = { 'service/src/platform': 32, 'contract/src': 33 }

test('no folder has more than 20 source files, with two exceptions', async () => {
  const counts = new Map<string, number>()
  for (const path of await listSourceFiles()) {
    const folder = dirname(path)
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  expect(counts.size).toBeGreaterThan(30)
  const tooLarge = [...counts].filter(([folder, count]) => count > (exceptions[folder] ?? filesMax))
  expect(tooLarge).toEqual([])
})
