import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { repositoryRoot } from './source-files.ts'

// Everything that a comment or a page cites must be in this repository.

const files = execFileSync('git', ['ls-files', '-z'], { cwd: repositoryRoot, encoding: 'utf8' })
  .split('\0')
  .filter((path) => /\.(ts|sql|lua|md|json|ya?ml)$|^dev$|^\.ci\/run$/.test(path))
  .filter((path) => path !== 'pnpm-lock.yaml' && path !== 'tools/references.test.ts')
const read = (path: string) => readFileSync(join(repositoryRoot, path), 'utf8')

/** Citations by a code, a card or a section number, of documents that this repository does not have. */
const outside =
  /\bG\d{1,2}\.\d{1,2}\b|\b[Cc]ards? [A-K]\b|\b[Cc]ontract,? (?:section )?\d+\.\d+|\b[Dd]ecisions, section\b/g

test('nothing cites a document that is not in the repository', () => {
  expect(files.length).toBeGreaterThan(500)
  const found = files.flatMap((path) =>
    [...read(path).matchAll(outside)].map(([citation]) => `${path}: ${citation}`),
  )
  expect(found).toEqual([])
})

/** The anchor that a heading gets on common Git hosts. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')

function anchorsOf(page: string): Set<string> {
  return new Set([...read(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, text = '']) => anchorOf(text)))
}

test('every citation of a page in docs/ names a page, and a heading where it names one', () => {
  const broken: string[] = []
  let citations = 0
  for (const path of files) {
    for (const [cited, page = '', anchor] of read(path).matchAll(
      /\b(docs\/[\w./-]+\.md)(?:#([\w-]+))?/g,
    )) {
      citations++
      const isFound = files.includes(page) && (!anchor || anchorsOf(page).has(anchor))
      if (!isFound) broken.push(`${path}: ${cited}`)
    }
  }
  expect(citations).toBeGreaterThan(50)
  expect(broken).toEqual([])
})
