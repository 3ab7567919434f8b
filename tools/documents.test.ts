import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

// Documents that name something which is not there are worse than none.

const root = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFile(join(root, path), 'utf8')

async function pages(): Promise<string[]> {
  const inDocs = (await readdir(join(root, 'docs'), { recursive: true })).map(
    (name) => `docs/${name}`,
  )
  const atRoot = await readdir(root)
  return [...atRoot, ...inDocs].filter((name) => name.endsWith('.md'))
}

test('every setting is documented, and no other', async () => {
  const config = await read('service/src/config.ts')
  const settings = [...config.matchAll(/^ {2}([A-Z][A-Z_]+):/gm)].map(([, name]) => name)
  const operations = await read('docs/operations.md')
  const rows = [...operations.matchAll(/^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \|/gm)]
  const documented = rows.flatMap(([, names = '']) => names.replaceAll('`', '').split(', '))
  expect(new Set(documented)).toEqual(new Set(settings))
})

test('every link between our own documents leads somewhere', async () => {
  const broken: string[] = []
  for (const page of await pages()) {
    for (const [, target = ''] of (await read(page)).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
      const path = normalize(join(dirname(page), target))
      const isThere = await readdir(join(root, dirname(path))).then(
        (names) => names.includes(path.split('/').at(-1) ?? ''),
        () => false,
      )
      if (!isThere) broken.push(`${page} → ${target}`)
    }
  }
  expect(broken).toEqual([])
})

test('every command of ./dev that a document shows exists', async () => {
  const help = await read('dev')
  const known = new Set(
    [...help.matchAll(/^\.\/dev (\w+)/gm)].map(([, name]) => name).concat('pnpm'),
  )
  for (const page of await pages()) {
    for (const [, name] of (await read(page)).matchAll(/\.\/dev (\w+)/g)) {
      expect([page, known.has(name)]).toEqual([page, true])
    }
  }
})
