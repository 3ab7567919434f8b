import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { compileCache } from './compile-cache.ts'
import { repositoryRoot } from './source-files.ts'

// Whoever asks a command of ./dev what it does must not start it.

type Options = { root?: string; cwd?: string; path?: string }

function dev(line: string, { root = repositoryRoot, cwd, path = '' }: Options = {}) {
  const env = { ...process.env, ...compileCache(), PATH: `${path}${process.env['PATH']}` }
  // A command that wrongly starts to work is stopped.
  const timeout = 60_000
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(join(root, 'dev'), line.split(' '), { cwd, env, timeout }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    )
  })
}

const list = (await dev('help')).stdout
const listed = [...list.matchAll(/(?:^|, )\.\/dev (\w+)/gm)].map(([, name = '']) => name)
/** They print what the tools themselves say. */
const tools = ['node', 'pnpm']
/** Kinds of a run of `./dev bench`, whose help is its own. */
const optionsOfBench = ['--against', '--trace', '--profile']
const benchmarks = [...(await dev('bench --help')).stdout.matchAll(/^ {7}\.\/dev bench (\S+)/gm)]
  .map(([, name = '']) => name)
  .filter((name) => !optionsOfBench.includes(name))
const commands = [
  ...listed.filter((name) => !tools.includes(name)),
  ...benchmarks.map((name) => `bench ${name}`),
]

test('the commands that the other tests run are found', () => {
  expect(listed.length).toBeGreaterThan(12)
  expect(listed).toEqual(expect.arrayContaining(['check', 'native', 'gatehouse', ...tools]))
  expect(benchmarks.toSorted()).toEqual([
    '--counts',
    'administration',
    'memory',
    'overload',
    'scale',
    'start',
  ])
})

/** A checkout that has nothing but what help needs, on a machine where nothing can be installed. */
let bare: string
let path: string
let before: unknown
beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dev-help-'))
  bare = join(folder, 'checkout')
  path = `${join(folder, 'bin')}:`
  await mkdir(join(folder, 'bin'))
  for (const name of ['npm', 'node', 'pnpm']) {
    await writeFile(join(folder, 'bin', name), '#!/bin/sh\nexit 9\n', { mode: 0o755 })
  }
  for (const part of ['dev', 'tools/help', 'tools/toolchain']) {
    await cp(join(repositoryRoot, part), join(bare, part), { recursive: true })
  }
  before = await filesOf(bare)
})
afterAll(() => rm(join(bare, '..'), { recursive: true, force: true }))

async function filesOf(folder: string) {
  const names = (await readdir(folder, { recursive: true })).toSorted()
  return Promise.all(names.map(async (name) => [name, (await stat(join(folder, name))).mtimeMs]))
}

test.each(commands)('./dev %s --help says how it is used, and does nothing', async (command) => {
  const options = { root: bare, path }
  const [long, short, asked] = await Promise.all([
    dev(`${command} --help`, options),
    dev(`${command} -h`, options),
    dev(`help ${command}`, options),
  ])
  expect(long).toMatchObject({ code: 0, stderr: '' })
  expect(long.stdout.startsWith(`Usage: ./dev ${command}`)).toBe(true)
  expect(long.stdout).toMatch(new RegExp(`^Examples?:\\n.*\\./dev ${command}`, 'm'))
  expect(long.stdout).toContain('-h, --help')
  expect([short, asked]).toEqual([long, long])
  expect(await filesOf(bare)).toEqual(before)
})

test('help is help wherever it is written, and the benchmarks have their own', async () => {
  const [check, bench, overload] = await Promise.all([
    dev('check --without-tests --help'),
    dev('bench --quick cpu -h'),
    dev('bench overload --seconds 5 -h'),
  ])
  expect(check.stdout).toMatch(/^Usage: \.\/dev check /)
  expect(bench.stdout).toMatch(/^Usage: \.\/dev bench \[/)
  expect(overload.stdout).toMatch(/^Usage: \.\/dev bench overload /)
})

test('help of node and pnpm is that of the tools, and gatehouse and operator list their commands', async () => {
  const names = [...tools, 'gatehouse', 'operator']
  const [node, pnpm, gatehouse, operator] = await Promise.all(
    names.map(async (name) => {
      const { code, stdout, stderr } = await dev(`${name} --help`)
      expect([name, code, stderr]).toEqual([name, 0, ''])
      return stdout
    }),
  )
  expect(node).toContain('node [options]')
  expect(pnpm).toMatch(/^Usage: pnpm /m)
  expect(gatehouse).toMatch(/^Usage: \.\/dev gatehouse [^]*^ {2}list-policies /m)
  expect(operator).toMatch(/^Usage: \.\/dev operator [^]*^ {2}reconcile /m)
  const topics = [...(operator ?? '').matchAll(/^gatehouse operator (\S+) <command>$/gm)]
  const line = list.split('\n').find((each) => each.startsWith('./dev operator')) ?? ''
  expect(topics.length).toBeGreaterThan(4)
  for (const [, topic] of topics) expect(line).toContain(topic)
})

test('what a command does not take is named and refused, and nothing is done', async () => {
  const others = ['test', 'format', 'operator', 'gatehouse']
  const own = commands.filter((command) => !others.includes(command))
  const outcomes = await Promise.all(
    own.map(async (command) => {
      const { code, stdout, stderr } = await dev(`${command} --no-such-option`)
      return [command, code, stdout, stderr.includes("'--no-such-option'")]
    }),
  )
  expect(outcomes).toEqual(own.map((command) => [command, 2, '', true]))
})

test('tools that take names of files run in the folder of their caller', async () => {
  const cwd = await realpath(tmpdir())
  expect((await dev('node -p process.cwd()', { cwd })).stdout.trim()).toBe(cwd)
})
