import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { listSourceFiles } from '@gatehouse/tools/source-files'
import { expect, onTestFinished, test } from 'vitest'

import { runTests } from './run-tests.ts'
import { aloneInAcceptance, aloneInIntegration, aloneInUnit } from './test-files.ts'

const reporter = new URL('totals-reporter.ts', import.meta.url).href

/** How long each ring took differs from run to run. */
const timeLine = /^Where the time went:$|^ {2}\w+: \d+ s, \d+ % of \d+ cores busy$/

/** A repository with two rings; what a file is called says in which of them it is. */
async function repositoryWith(files: Record<string, string>) {
  const root = await mkdtemp(join(tmpdir(), 'run-tests-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const project = (name: string) =>
    `{ test: { name: '${name}', globals: true, include: ['${name}*.test.mjs'] } }`
  await writeFile(
    join(root, 'vitest.config.mjs'),
    `import { totalsReporter } from '${reporter}'
     const projects = [${project('first')}, ${project('second')}]
     export default { test: { reporters: [totalsReporter], projects } }`,
  )
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(root, `${name}.test.mjs`), text)
  }
  const interruption = new AbortController()
  return async (...args: string[]) => {
    const lines: string[] = []
    const startServers = async () => ({
      environment: { SERVER_URL: 'here' },
      stop: async () => {
        if ('interrupted' in files) interruption.abort()
      },
    })
    const rings = { first: { projects: ['first'], startServers }, second: { projects: ['second'] } }
    const write = (text: string) => lines.push(...text.split('\n').filter(Boolean))
    const exitCode = await runTests(args, { root, rings, write, signal: interruption.signal })
    const { times = [], others = [] } = Object.groupBy(lines, (line) =>
      timeLine.test(line) ? 'times' : 'others',
    )
    expect(times.length).toBe(1 + lines.filter((line) => line.startsWith('-- ')).length)
    return { exitCode, lines: others }
  }
}

test('all rings run although one has failed; errors outside of tests fail the run, in words', async () => {
  const run = await repositoryWith({
    first: `
      test('passes', () => void Promise.reject(new Error('terminating connection')))
      test('fails', () => expect(1).toBe(2))`,
    'second-a': `
      afterAll(() => { throw new Error('not cleaned up') })
      test('passes', () => {})
      test.skip('is skipped', () => {})`,
    'second-b': "throw new Error('not loaded')",
  })
  expect(await run()).toEqual({
    exitCode: 1,
    lines: [
      '-- first',
      '-- second',
      'Failed:',
      '  first: first.test.mjs: fails: expected 1 to be 2 // Object.is equality',
      'Errors outside of tests: 3. They fail the run.',
      '  first: unhandled error: terminating connection',
      '  second: second-a.test.mjs: not cleaned up',
      '  second: second-b.test.mjs: not loaded',
      '2 passed, 1 failed, 1 skipped',
    ],
  })
})

test('with --again a test that fails once is named and passes; one that fails twice fails', async () => {
  const run = await repositoryWith({
    first: `
      import { existsSync, writeFileSync } from 'node:fs'
      test('passes', () => {})
      test('fails once', () => {
        const marker = new URL('marker', import.meta.url)
        const isSecond = existsSync(marker)
        writeFileSync(marker, '')
        expect(isSecond).toBe(true)
      })`,
    second: "test('fails', () => expect(1).toBe(2))",
  })
  const reason = 'first.test.mjs: fails once: expected false to be true // Object.is equality'
  expect(await run('--again')).toEqual({
    exitCode: 1,
    lines: [
      '-- first',
      '-- second',
      'Failed at first, and passed when their file ran again alone. Find out why:',
      `  first: ${reason}`,
      'Failed:',
      '  second: second.test.mjs: fails: expected 1 to be 2 // Object.is equality',
      '2 passed, 1 failed',
    ],
  })
})

test('with --again a file runs once more whose hook has failed', async () => {
  const failsOnce = (name: string) => `
    import { existsSync, writeFileSync } from 'node:fs'
    beforeAll(() => {
      const marker = new URL('${name}', import.meta.url)
      const isSecond = existsSync(marker)
      writeFileSync(marker, '')
      if (!isSecond) throw new Error('not started')
    })
    test('passes', () => {})`
  const run = await repositoryWith({
    'first-a': failsOnce('marker'),
    'first-b': "test('passes', () => {})",
    second: "beforeAll(() => { throw new Error('never starts') })\ntest('passes', () => {})",
  })
  expect(await run('--again')).toEqual({
    exitCode: 1,
    lines: [
      '-- first',
      '-- second',
      'Failed at first, and passed when their file ran again alone. Find out why:',
      '  first: first-a.test.mjs: not started',
      'Errors outside of tests: 1. They fail the run.',
      '  second: second.test.mjs: never starts',
      '2 passed, 0 failed, 1 skipped',
    ],
  })
})

test('a ring has its servers while it runs, and no longer', async () => {
  const run = await repositoryWith({
    first: "test('reads', () => expect(process.env.SERVER_URL).toBe('here'))",
    second: "test('reads', () => expect(process.env.SERVER_URL).toBeUndefined())",
  })
  expect(await run()).toMatchObject({ exitCode: 0 })
})

test('after an interruption no other ring starts', async () => {
  const run = await repositoryWith({ first: "test('passes', () => {})", interrupted: '' })
  expect(await run()).toEqual({ exitCode: 0, lines: ['-- first', '1 passed, 0 failed'] })
})

test('one ring by its name, and --long for every test process', async () => {
  const run = await repositoryWith({
    first: "test('is long', () => expect(process.env.LONG_TESTS).toBe('1'))",
    second: "test('fails', () => expect(1).toBe(2))",
  })
  expect(await run('first', '--long')).toEqual({
    exitCode: 0,
    lines: ['-- first', '1 passed, 0 failed'],
  })
})

test('every file that is named in the lists exists', async () => {
  const files = await listSourceFiles({ hasTests: true })
  for (const name of [...aloneInUnit, ...aloneInIntegration, ...aloneInAcceptance]) {
    expect(files).toContain(name)
  }
})
