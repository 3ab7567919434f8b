import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { buildProgram } from '@gatehouse/tools/build/build-program'
import { listFiles } from '@gatehouse/tools/build/list-files'
import { repositoryRoot } from '@gatehouse/tools/source-files'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'

// What `./dev build` makes: the files that ship.

let scratch: string
let built: string
beforeAll(async () => {
  await mkdir(join(repositoryRoot, '.scratch'), { recursive: true })
  scratch = await mkdtemp(join(repositoryRoot, '.scratch/program-'))
  built = join(scratch, 'one')
  await buildProgram(built)
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

async function hashAll(folder: string): Promise<Record<string, string>> {
  const hashes: Record<string, string> = {}
  for (const name of await listFiles(folder)) {
    const bytes = await readFile(join(folder, name))
    hashes[name] = createHash('sha256').update(bytes).digest('hex')
  }
  return hashes
}

test('two builds of one commit have the same bytes', async () => {
  const another = join(scratch, 'two')
  await buildProgram(another)
  expect(await hashAll(another)).toEqual(await hashAll(built))
})

test('no file names the folder it was built in, and source maps hold no source text', async () => {
  for (const name of await listFiles(built)) {
    const text = await readFile(join(built, name), 'latin1')
    expect([name, text.includes(repositoryRoot)]).toEqual([name, false])
    if (!name.endsWith('.map')) continue
    const { sourcesContent = [] } = JSON.parse(text) as { sourcesContent?: (string | null)[] }
    expect([name, sourcesContent.filter((source) => source !== null)]).toEqual([name, []])
  }
})

test('a place in the build leads to its line in the sources', async () => {
  const names = await listFiles(built)
  const name = names.find((each) => each.startsWith('serve-') && each.endsWith('.mjs')) ?? ''
  const lines = (await readFile(join(built, name), 'utf8')).split('\n')
  const line = lines.findIndex((each) => each.includes('function serveSupervised('))
  const payload = JSON.parse(await readFile(join(built, `${name}.map`), 'utf8')) as SourceMapPayload
  const found = new SourceMap(payload).findEntry(line, lines[line]?.indexOf('serveSupervised') ?? 0)
  if (!('originalSource' in found)) throw new Error('The map has no entry for the function.')
  const sources = (await readFile(join(repositoryRoot, 'service/src/serve.ts'), 'utf8')).split('\n')
  expect(found.originalSource).toMatch(/service\/src\/serve\.ts$/)
  expect(sources[found.originalLine]).toContain('function serveSupervised(')
})

// The console is 0.6 MB of it: its files, and each of them compressed twice.
test('without maps it takes at most 17 MB', async () => {
  const names = (await listFiles(built)).filter((name) => !name.endsWith('.map'))
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(built, name))).size))
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  expect(bytes).toBeLessThan(17 * 2 ** 20)
})

test('the licence of every bundled package is there', async () => {
  const text = await readFile(join(built, 'LICENSES-OF-PACKAGES.txt'), 'utf8')
  const parts = text.split(/^== /m).slice(1)
  const names = parts.map((part) => part.split(' ')[0])
  expect(names).toEqual(
    expect.arrayContaining(['fastify', 'kysely', 'pg', 'react', 'undici', 'zod']),
  )
  const withoutText = parts.filter((part) => part.trim().split('\n').length < 3)
  expect(withoutText.map((part) => part.split('\n')[0])).toEqual([])
})

test('the packed package runs in an empty folder, with Node alone', async () => {
  // Not inside of the repository, whose packages npm would find.
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-packed-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const run = promisify(execFile)
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: built,
  })
  const [packed] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[]
  expect(packed?.files.filter(({ path }) => path.endsWith('.map'))).toEqual([])
  await run('npm', ['install', '--offline', '--no-audit', `./${packed?.filename}`], {
    cwd: folder,
  })
  const command = join(folder, 'node_modules/.bin/gatehouse')
  const env = { PATH: process.env['PATH'] ?? '' }
  const release = JSON.parse(await readFile(join(built, 'release.json'), 'utf8')) as {
    commit: string
    migration: string
  }
  const version = await run(command, ['--version'], { cwd: folder, env })
  expect(version.stdout).toBe(
    `gatehouse 0.1.0 (commit ${release.commit}, migration ${release.migration})\n`,
  )
  expect((await run(command, ['help'], { cwd: folder, env })).stdout).toContain('Run the service')
  expect((await run(command, ['operator', '--help'], { cwd: folder, env })).stdout).toContain(
    'organizations',
  )
  const unset = await run(command, ['serve'], { cwd: folder, env }).catch((error: unknown) => error)
  expect(unset).toMatchObject({ code: 1, stderr: expect.stringContaining('DATABASE_URL') })
})
