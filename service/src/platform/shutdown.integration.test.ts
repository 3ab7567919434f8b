import { spawn } from 'node:child_process'

import { expect, test } from 'vitest'

const shutdown = new URL('./shutdown.ts', import.meta.url).href

/** A process with two steps to stop, the first of which fails; `after` runs once it is up. */
function start(after: string, options = '{}') {
  const script = `
    const { stopOnSignals } = await import(${JSON.stringify(shutdown)})
    const say = (text) => process.stdout.write(text + '\\n')
    const log = { event: say, problem: (what) => say('problem: ' + what), request() {} }
    stopOnSignals([
      { name: 'first', stop: async () => { say('first'); throw new Error('stuck') } },
      { name: 'second', stop: () => new Promise((done) => setTimeout(() => { say('second'); done() }, 300)) },
    ], log, ${options})
    setInterval(() => undefined, 1000)
    say('up')
    ${after}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const lines: string[] = []
  child.stdout?.on('data', (chunk: Buffer) => lines.push(...chunk.toString().trim().split('\n')))
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const up = async () => {
    await expect.poll(() => lines, { timeout: 5000 }).toContain('up')
  }
  return { child, lines, exit, up }
}

const orderly = ['stopping', 'first', 'problem: first_not_stopped', 'second', 'stopped']

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s stops everything in order and ends with 0',
  async (signal) => {
    const { child, lines, exit, up } = start('')
    await up()
    child.kill(signal)
    expect(await exit).toBe(0)
    await expect.poll(() => lines).toEqual(['up', ...orderly])
  },
)

test('a second signal ends the process at once', async () => {
  const { child, lines, exit, up } = start('')
  await up()
  child.kill('SIGTERM')
  await expect.poll(() => lines).toContain('first')
  child.kill('SIGTERM')
  expect(await exit).toBe(1)
  expect(lines).not.toContain('second')
})

test('when the parent process exits, it stops in order', async () => {
  const { child, lines, exit, up } = start('')
  await up()
  child.disconnect()
  expect(await exit).toBe(0)
  await expect.poll(() => lines).toEqual(['up', ...orderly])
})

test.each([
  'void Promise.reject(new Error("lost"))',
  'setTimeout(() => { throw new Error("lost") })',
])('an uncaught error: %s is logged, drained and ends with 1', async (failure) => {
  const { lines, exit } = start(failure)
  expect(await exit).toBe(1)
  expect(lines).toEqual(['up', 'problem: uncaught_error', ...orderly])
})

test('the first signal after such a failure does not cut the drain short', async () => {
  const { child, lines, exit } = start('void Promise.reject(new Error("lost"))')
  await expect.poll(() => lines, { timeout: 5000 }).toContain('first')
  child.kill('SIGTERM')
  expect(await exit).toBe(1)
  expect(lines).toContain('second')
})

test('a process with a supervisor takes further signals, and the end of the supervisor, for the same one', async () => {
  const { child, lines, exit, up } = start('', '{ isSupervised: true }')
  await up()
  child.kill('SIGINT')
  await expect.poll(() => lines).toContain('first')
  child.kill('SIGTERM')
  child.kill('SIGINT')
  child.disconnect()
  expect(await exit).toBe(0)
  await expect.poll(() => lines).toEqual(['up', ...orderly])
})

test('a failure of something that was stopped ends with 1', async () => {
  const { child, lines, exit, up } = start('', '{ hasFailed: () => true }')
  await up()
  child.kill('SIGTERM')
  expect(await exit).toBe(1)
  await expect.poll(() => lines).toEqual(['up', ...orderly])
})
