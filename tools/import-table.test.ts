import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { mayImport, mayImportInside } from '../oxlint.config.ts'

// The import table is the architecture: every import it does not allow must fail the check.

const root = fileURLToPath(new URL('../', import.meta.url))
let folder: string
let reported: Set<string>

/** One file for each pair of folders, named after the pair. */
const probes = Object.keys(mayImport).flatMap((from) =>
  Object.keys(mayImport).map((to) => ({ from, to, file: `service/src/${from}/to-${to}.ts` })),
)
/** One file for each pair of subfolders of one folder. */
const subfolderProbes = Object.entries(mayImportInside).flatMap(([folder, subfolders]) =>
  Object.keys(subfolders).flatMap((from) =>
    Object.keys(subfolders).map((to) => ({
      folder,
      from,
      to,
      file: `service/src/${folder}/${from}/to-${to}.ts`,
    })),
  ),
)
/** One file of service/training for each folder, and for each subfolder of moderation. */
const trainingProbes = [
  ...Object.keys(mayImport),
  ...Object.keys(mayImportInside['moderation'] ?? {}).map((name) => `moderation/${name}`),
].map((to) => ({ to, file: `service/training/to-${to.replace('/', '-')}.ts` }))
const forbidden = {
  'service/src/limits/counters/takes-a-test-helper.ts':
    "import { a } from '#formats/messages/testing/a.ts'\n\nexport const b = a\n",
  'service/src/audit/climbs.ts': "import { a } from '../platform/a.ts'\n\nexport const b = a\n",
  'service/src/takes-training.ts': "import { a } from '../training/a.ts'\n\nexport const b = a\n",
  'service/src/moderation/takes-training.ts':
    "import { a } from '../../training/a.ts'\n\nexport const b = a\n",
  'service/training/takes-an-entry.ts': "import { a } from '#config.ts'\n\nexport const b = a\n",
  'service/training/takes-a-test-helper.ts':
    "import { a } from '#moderation/local/testing/a.ts'\n\nexport const b = a\n",
  'service/training/runs-commands.ts':
    "import { exec } from 'node:child_process'\n\nexport const a = exec\n",
  'service/src/audit/takes-an-entry.ts': "import { a } from '#assemble.ts'\n\nexport const b = a\n",
  'service/src/audit/reads-environment.ts': "export const a = process.env['A']\n",
  'service/src/audit/speaks.ts': "console.log('a')\n",
  'service/src/audit/default-export.ts': 'export default 1\n',
  'service/src/audit/runs-commands.ts':
    "import { exec } from 'node:child_process'\n\nexport const a = exec\n",
  'service/src/runs-code.ts':
    "import { runInNewContext } from 'node:vm'\n\nexport const a = runInNewContext\n",
  'console/src/parts/takes-a-page.ts':
    "import { a } from '#pages/roles/a.ts'\n\nexport const b = a\n",
  'console/src/api/takes-values.ts':
    "import { endpoints } from '@gatehouse/contract/endpoints'\n\nexport const b = endpoints\n",
  'service/src/audit/evaluates.ts': "export const a: unknown = eval('1')\n",
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'import-table-'))
  await write('oxlint.config.ts', `export { default } from '${root}oxlint.config.ts'\n`)
  for (const { to, file } of probes) {
    await write(file, `import { a } from '#${to}/a.ts'\n\nexport const b = a\n`)
  }
  for (const { folder: parent, to, file } of subfolderProbes) {
    await write(file, `import { a } from '#${parent}/${to}/a.ts'\n\nexport const b = a\n`)
  }
  for (const { to, file } of trainingProbes) {
    await write(file, `import { a } from '#${to}/a.ts'\n\nexport const b = a\n`)
  }
  for (const [file, text] of Object.entries(forbidden)) await write(file, text)
  reported = await lint()
}, 30_000)

afterAll(() => rm(folder, { recursive: true, force: true }))

async function write(path: string, text: string) {
  const file = join(folder, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
}

/** The files that the linter complains about. */
async function lint(): Promise<Set<string>> {
  const args = ['--format', 'json', '.']
  const { stdout } = await promisify(execFile)('oxlint', args, {
    cwd: folder,
    maxBuffer: 64 * 1024 * 1024,
  }).catch((failure: { stdout: string }) => failure)
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { filename: string }[] }
  return new Set(diagnostics.map(({ filename }) => filename))
}

test('every import that the table does not allow is refused, and no other', () => {
  const wrong = probes.filter(({ from, to, file }) => {
    const isAllowed = from === to || mayImport[from]?.includes(to)
    return reported.has(file) === isAllowed
  })
  expect(wrong).toEqual([])
})

test('inside a folder, every import between subfolders outside the table is refused', () => {
  const wrong = subfolderProbes.filter(({ folder: parent, from, to, file }) => {
    const isAllowed = from === to || mayImportInside[parent]?.[from]?.includes(to)
    return reported.has(file) === isAllowed
  })
  expect(wrong).toEqual([])
})

test('training may import moderation and its local scorer, and nothing else of the service', () => {
  const allowed = trainingProbes.filter(({ file }) => !reported.has(file)).map(({ to }) => to)
  expect(allowed).toEqual(['moderation', 'moderation/local'])
})

test('every folder inside a folder with rows has a row, and every row a folder', async () => {
  for (const [name, subfolders] of Object.entries({ '': mayImport, ...mayImportInside })) {
    const entries = await readdir(join(root, 'service/src', name), { withFileTypes: true })
    const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
    const known = folders.filter((each) => each !== 'testing')
    expect([name, known.toSorted()]).toEqual([name, Object.keys(subfolders).toSorted()])
  }
})

test.each(Object.keys(forbidden))('%s is refused', (file) => {
  expect(reported).toContain(file)
})

test('the tables have no cycle: every row names only rows above it', () => {
  const upward = [mayImport, ...Object.values(mayImportInside)].flatMap((table) => {
    const names = Object.keys(table)
    return Object.entries(table).flatMap(([from, allowed]) =>
      allowed
        .filter((to) => names.indexOf(to) >= names.indexOf(from))
        .map((to) => `${from} → ${to}`),
    )
  })
  expect(upward).toEqual([])
})
