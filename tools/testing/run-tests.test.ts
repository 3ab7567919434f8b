import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { listSourceFiles } from '@gatehouse/tools/source-files'
import { expect, onTestFinished, test } from 'vitest'

import { runTests } from './run-tests.ts'
import { aloneInAcceptance, aloneInIntegration, aloneInUnit } from './test-files.ts'

const reporter = new URL('totals-reporter.ts', import.meta.url).href

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
  return async (...args: string[]) => {
    const lines: string[] = []
    const rings = { first: ['first'], second: ['second'] }
    const write = (text: string) => lines.push(...text.split('\n').filter(Boolean))
    return { exitCode: await runTests(args, { root, rings, write }), lines }
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
      'Errors outside of tests: 3. They fail the run.',
      '  first: unhandled error: terminating connection',
      '  second: second-a.test.mjs: not cleaned up',
      '  second: second-b.test.mjs: not loaded',
      '2 passed, 1 failed, 1 skipped',
    ],
  })
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
