import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { type ErrorCode, errors } from '@gatehouse/contract/error'
import { statusIn } from '@gatehouse/contract/error-body'
import { describe, expect, test } from 'vitest'

import { listSourceFiles, repositoryRoot } from './source-files.ts'

// The codes that pages name are those of the contract, with their statuses, and none is forgotten.

const read = (path: string) => readFile(join(repositoryRoot, path), 'utf8')
const codes = Object.keys(errors) as ErrorCode[]
const sorted = (names: Iterable<string>) =>
  [...names].toSorted((one, other) => (one < other ? -1 : 1))
const inBackticks = (text: string) =>
  [...text.matchAll(/`([a-z_]+)`/g)].map(([, code = '']) => code)

const specification = await read('docs/specification/errors.md')
const [, section = ''] = /^## Codes\n(.*?)^## /ms.exec(specification) ?? []

/** The rows of the table: statuses and codes. */
const rows = [...section.matchAll(/^\| ([\d, ]+) \| (.*) \|$/gm)].map(
  ([, statuses = '', listed = '']) => ({
    statuses: statuses.split(', ').map(Number),
    // What is in parentheses is a remark.
    codes: inBackticks(listed.replaceAll(/\(.*?\)/g, '')),
  }),
)

test('the table of the specification has every code once, in the row of its status', () => {
  expect(sorted(rows.flatMap((row) => row.codes))).toEqual(sorted(codes))
  for (const row of rows) {
    const found = new Set(row.codes.map((code) => errors[code as ErrorCode].status))
    expect(sorted([...found].map(String))).toEqual(sorted(row.statuses.map(String)))
  }
})

test('docs/errors.md explains every code', async () => {
  const headings = [...(await read('docs/errors.md')).matchAll(/^## (\w+)$/gm)].map(
    ([, name = '']) => name,
  )
  expect(sorted(headings)).toEqual(sorted(codes))
})

test('the codes that are called "never sent" are those that nothing in the service sends', async () => {
  const [, listed = ''] = /^Never sent: ([^.]*)\./m.exec(section) ?? []
  const paths = (await listSourceFiles()).filter(
    (path) => path.startsWith('service/src/') && !/\.test\.ts$|\/testing\//.test(path),
  )
  const sources = (await Promise.all(paths.map(read))).join('\n')
  expect(sorted(inBackticks(listed))).toEqual(
    sorted(codes.filter((code) => !isSentBy(sources, code))),
  )
})

/** `policy_not_found` is made of the kind of the resource: `notFound('policy', …)`. */
function isSentBy(sources: string, code: string): boolean {
  const kind = code.replace(/_not_found$/, '')
  const isMade = kind !== code && new RegExp(`notFound\\(\\s*'${kind}'`).test(sources)
  return isMade || new RegExp(`['"\`]${code}['"\`]`).test(sources)
}

/** `404 \`policy_not_found\`` in a sentence or a table. */
const named = /\b([45]\d\d) `([a-z_]+)`/g

describe.each(['docs', 'docs/specification'])('%s', async (folder) => {
  const pages = (await readdir(join(repositoryRoot, folder))).filter((name) => name.endsWith('.md'))

  test.each(pages)('%s names codes that there are, with their statuses', async (page) => {
    const text = await read(join(folder, page))
    const wrong = [...text.matchAll(named)].filter(
      ([, status, code]) => !isRight(Number(status), code),
    )
    expect(wrong.map(([words]) => words)).toEqual([])
  })
})

/** A status can differ by family: 529 is 503 for some callers. */
function isRight(status: number, code = ''): boolean {
  const entry = (errors as Record<string, { status: number } | undefined>)[code]
  if (!entry) return false
  return status === entry.status || status === statusIn('openai', entry.status as never)
}
