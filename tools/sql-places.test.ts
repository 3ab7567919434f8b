import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { listSourceFiles, repositoryRoot } from './source-files.ts'

const statement = /\bsql(?:<[^`]*>)?`|\.(?:selectFrom|insertInto|updateTable|deleteFrom)\(/

/** `platform/` runs statements that others give it, and migrates. */
const mayHaveSql = (path: string) =>
  path.endsWith('-store.ts') || path.startsWith('service/src/platform/')

test('the SQL of the service is in its stores', async () => {
  const files = (await listSourceFiles()).filter(
    (path) => path.startsWith('service/src/') && !path.includes('/testing/'),
  )
  const withSql: string[] = []
  for (const path of files) {
    const text = await readFile(join(repositoryRoot, path), 'utf8')
    if (statement.test(text)) withSql.push(path)
  }
  expect(withSql.length).toBeGreaterThan(40)
  expect(withSql.filter((path) => !mayHaveSql(path))).toEqual([])
})
