import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { listSourceFiles, repositoryRoot } from './source-files.ts'

/** Generated from the tables of the database, whose rows often have the name of what they store. */
const generated = 'service/src/platform/database-types.ts'
const exported =
  /^export (?:async )?(?:abstract )?(?:function\*?|const|class|type|interface) (?<name>\w+)/gm

test('no name is exported by two files of the service', async () => {
  const files = (await listSourceFiles()).filter(
    (path) => path.startsWith('service/src/') && !path.includes('/testing/') && path !== generated,
  )
  const places = new Map<string, Set<string>>()
  for (const path of files) {
    const text = await readFile(join(repositoryRoot, path), 'utf8')
    for (const { groups } of text.matchAll(exported)) {
      const name = groups?.['name'] ?? ''
      places.set(name, (places.get(name) ?? new Set()).add(path))
    }
  }
  expect(places.size).toBeGreaterThan(1500)
  const ambiguous = [...places].filter(([, paths]) => paths.size > 1)
  expect(ambiguous.map(([name, paths]) => `${name}: ${[...paths].join(', ')}`)).toEqual([])
})
