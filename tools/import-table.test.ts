import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { mayImport } from '../oxlint.config.ts'

// The import table is the architecture: every import it does not allow must fail the check.

const root = fileURLToPath(new URL('../', import.meta.url))
let folder: string
let reported: Set<string>

/** One file for each pair of folders, named after the pair. */
const probes = Object.keys(mayImport).flatMap((from) =>
  Object.keys(mayImport).map((to) => ({ from, to, file: `service/src/${from}/to-${to}.ts` })),
)
const oddities = {
  'service/src/audit/climbs.ts': "import { a } from '../platform/a.ts'\n\nexport const b = a\n",
  'service/src/audit/takes-an-entry.ts': "import { a } from '#assemble.ts'\n\nexport const b = a\n",
  'service/src/audit/reads-environment.ts': "export const a = process.env['A']\n",
  'service/src/audit/speaks.ts': "console.log('a')\n",
  'service/src/audit/default-export.ts': 'export default 1\n',
  'service/src/audit/runs-commands.ts':
    "import { exec } from 'node:child_process'\n\nexport const a = exec\n",
  'service/src/runs-code.ts':
    "import { runInNewContext } from 'node:vm'\n\nexport const a = runInNewContext\n",
  'service/src/audit/evaluates.ts': "export const a: unknown = eval('1')\n",
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'import-table-'))
  await write('oxlint.config.ts', `export { default } from '${root}oxlint.config.ts'\n`)
  for (const { to, file } of probes) {
    await write(file, `import { a } from '#${to}/a.ts'\n\nexport const b = a\n`)
  }
  for (const [file, text] of Object.entries(oddities)) await write(file, text)
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

test.each(Object.keys(oddities))('%s is refused', (file) => {
  expect(reported).toContain(file)
})

test('the table has no cycle: every folder imports only folders above it', () => {
  const folders = Object.keys(mayImport)
  const upward = Object.entries(mayImport).flatMap(([from, allowed]) =>
    allowed
      .filter((to) => folders.indexOf(to) >= folders.indexOf(from))
      .map((to) => `${from} → ${to}`),
  )
  expect(upward).toEqual([])
})
