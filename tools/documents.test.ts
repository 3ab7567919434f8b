import { execFileSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

// Documents must not name settings, links, commands or files that do not exist.

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

test('every link between our own documents has a target', async () => {
  const broken: string[] = []
  for (const page of await pages()) {
    for (const [, target = ''] of (await read(page)).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
      const path = normalize(join(dirname(page), target))
      const isFound = await readdir(join(root, dirname(path))).then(
        (names) => names.includes(path.split('/').at(-1) ?? ''),
        () => false,
      )
      if (!isFound) broken.push(`${page} → ${target}`)
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

/** Every file of the repository, and every folder with a slash at its end. */
function listRepository(): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  const files = listed.trim().split('\n')
  const folders = files.flatMap((file) =>
    file.split('/').map((_, depth, names) => `${names.slice(0, depth).join('/')}/`),
  )
  return [...files, ...new Set(folders)]
}

/** Source files anywhere in a page, and folders in backquotes: `credits/holds/`. Patterns and examples are left out. */
function namedPaths(page: string): string[] {
  const files = page.matchAll(/(?<![\w*…<#./-])[\w-][\w./-]*\.(?:ts|lua|sql|yaml)\b/g)
  const folders = page.matchAll(/`([\w-]+(?:\/[\w-]+)*\/)`/g)
  return [...files, ...folders].map(([whole, folder]) => folder ?? whole)
}

test('every source file and folder that a document names exists', async () => {
  const repository = listRepository()
  const exists = (path: string) =>
    repository.some((known) => known === path || known.endsWith(`/${path}`))
  const missing: string[] = []
  let named = 0
  for (const page of (await pages()).filter((name) => !name.startsWith('docs/specification/'))) {
    for (const path of new Set(namedPaths(await read(page)))) {
      named++
      if (!exists(path)) missing.push(`${page}: ${path}`)
    }
  }
  expect(named).toBeGreaterThan(100)
  expect(missing, 'a document names what does not exist').toEqual([])
})

test('the overview is one page, and links every page about a feature', async () => {
  const overview = await read('ARCHITECTURE.md')
  expect(overview.split('\n').length).toBeLessThanOrEqual(130)
  expect(Buffer.byteLength(overview)).toBeLessThanOrEqual(9 * 1024)
  const index = await read('docs/architecture/README.md')
  const names = (await readdir(join(root, 'docs/architecture'))).filter(
    (name) => name !== 'README.md',
  )
  expect(names.length).toBeGreaterThan(10)
  const unlinked = names.filter(
    (name) => !overview.includes(`(docs/architecture/${name})`) || !index.includes(`(${name})`),
  )
  expect(unlinked).toEqual([])
})

/** Folders of the service, as deep as the import tables go. Helpers of tests stand beside what they help to test. */
function serviceFolders(depthMax: number): string[] {
  const prefix = 'service/src/'
  return listRepository()
    .filter((path) => path.startsWith(prefix) && path.endsWith('/') && path !== prefix)
    .map((path) => path.slice(prefix.length))
    .filter(
      (path) => path.split('/').length - 1 <= depthMax && !/.testing\/|^testing\/./.test(path),
    )
    .toSorted()
}

/** The folders in the first column of the tables below a heading. */
function foldersBelow(page: string, heading: string): string[] {
  const [, after = ''] = page.split(`\n## ${heading}\n`)
  const [section = ''] = after.split('\n## ')
  const cells = [...section.matchAll(/^\| (`[^|]+`) \|/gm)].map(([, cell = '']) => cell)
  return cells.flatMap((cell) => cell.replaceAll('`', '').split(', ')).toSorted()
}

test('the maps of folders have every folder of the service, and no other', async () => {
  const heading = 'The folders of the service'
  expect(foldersBelow(await read('ARCHITECTURE.md'), heading)).toEqual(serviceFolders(1))
  const layout = await read('docs/architecture/build-and-layout.md')
  expect(foldersBelow(layout, heading)).toEqual(serviceFolders(2))
})

/** What a reader of a drawing sees. */
const visibleTexts = (drawing: string) =>
  [...drawing.matchAll(/<text[^>]*>([^<]+)<\/text>/g)].map(([, text = '']) => text)

test('the drawing of a call names every step of a call', async () => {
  const source = await read('service/src/inference/run-inference.ts')
  const [, members = ''] = /export type CallSteps = \{(.*?)\n\}/s.exec(source) ?? []
  const steps = [...members.matchAll(/^ {2}(\w+)[(:]/gm)].map(([, name = '']) => name)
  expect(steps).toContain('callModel')
  const seen = visibleTexts(await read('docs/images/life-of-a-call.svg')).join('\n')
  const words = new Set(seen.match(/\w+/g))
  expect(steps.filter((step) => !words.has(step))).toEqual([])
})

test('the drawing of the table of checks names every check, in its order', async () => {
  const source = await read('service/src/inference/enforcement/checks.ts')
  const [, list = ''] = /export const checks: [^=]+ = \[(.*?)\]/s.exec(source) ?? []
  const checks: readonly string[] = list.match(/\w+/g) ?? []
  expect(checks.length).toBeGreaterThan(7)
  const seen = visibleTexts(await read('docs/images/table-of-checks.svg'))
  expect(seen.filter((text) => checks.includes(text))).toEqual(checks)
})

test('drawings have colours for both themes', async () => {
  const drawings = (await readdir(join(root, 'docs/images'))).filter((name) =>
    name.endsWith('.svg'),
  )
  expect(drawings.length).toBeGreaterThan(2)
  for (const name of drawings) {
    const drawing = await read(`docs/images/${name}`)
    expect([name, drawing.includes('@media (prefers-color-scheme: dark)')]).toEqual([name, true])
  }
})

test('the glossary explains every required word and names its file', async () => {
  const glossary = await read('docs/glossary.md')
  const rows = [...glossary.matchAll(/^\| ([^|]+) \|[^|]*\|[^|]+\| `([^`]+)` \|$/gm)]
  const words = rows.flatMap(([, names = '']) => names.split(', '))
  const required = [
    'turn',
    'part',
    'block',
    'frame',
    'piece',
    'hold',
    'settlement',
    'slot',
    'lease',
    'epoch',
    'pin',
    'opaque state',
    'batch',
  ]
  expect(required.filter((word) => !words.includes(word))).toEqual([])
  expect(words.length).toBe(new Set(words).size)
  const repository = new Set(listRepository())
  const paths = rows.map(([, , path = '']) => path)
  const exists = (path: string) => repository.has(`service/src/${path}`) || repository.has(path)
  expect(paths.filter((path) => !exists(path))).toEqual([])
})

test('compose gives the service every secret that its settings and the example catalogue read, and no other', async () => {
  const catalogue = await read('deploy/models.example.json')
  const compose = await read('deploy/compose.yaml')
  const needed = [
    ...catalogue.matchAll(/"\/run\/secrets\/(\w+)"/g),
    ...compose.matchAll(/_FILE: \/run\/secrets\/(\w+)$/gm),
  ].map(([, name]) => name)
  const [, given = ''] = /^ {4}secrets: \[(.*)\]$/m.exec(compose) ?? []
  expect(needed.length).toBeGreaterThan(1)
  expect(new Set(given.split(', '))).toEqual(new Set(needed))
  const defined = [...compose.matchAll(/^ {2}(\w+): \{ environment: (\w+) \}$/gm)]
  expect(new Set(defined.map(([, name]) => name))).toEqual(new Set(needed))
  const operations = await read('docs/operations.md')
  for (const [, , variable] of defined) expect(operations).toContain(`${variable}=`)
})

test('compose gives the service every key that the example of moderation reads, and the operations page asks for it', async () => {
  const example = await read('deploy/moderation.example.json')
  const needed = [...example.matchAll(/"env": "(\w+)"/g)].map(([, name]) => name)
  expect(needed.length).toBeGreaterThan(0)
  // Other tests use every example of this page.
  expect(await read('docs/moderation.md')).toContain(example)
  const compose = await read('deploy/compose.yaml')
  const operations = await read('docs/operations.md')
  for (const name of needed) {
    expect(compose).toContain(`      ${name}: \${${name}:-}\n`)
    expect(operations).toContain(`\n${name}=`)
  }
})
