import { fork } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { untilStarted } from './service-process.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'service-process-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function forkScript(source: string) {
  const path = join(folder, `${Math.random()}.mjs`)
  await writeFile(path, source)
  return fork(path, { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
}

const silent = 'setInterval(() => {}, 1000)'

test('the first message is what a process reports when it is up', async () => {
  const child = await forkScript("process.send('http://here'); process.disconnect()")
  expect(await untilStarted(child, { name: 'It' })).toBe('http://here')
})

test('a process that ends before it is up is an error with its exit code and its error output', async () => {
  const child = await forkScript("console.error('no such model'); process.exitCode = 3")
  await expect(untilStarted(child, { name: 'It' })).rejects.toThrow(
    'It ended with exit code 3: no such model',
  )
})

test('a process that stays silent is killed', async () => {
  const child = await forkScript(silent)
  const started = untilStarted(child, { name: 'It', timeoutMs: 500 })
  await expect(started).rejects.toThrow('It did not start within 0.5 seconds.')
  expect(child.signalCode).toBe('SIGKILL')
})

test('a process that is still starting when the signal aborts is killed', async () => {
  const [child, other] = [await forkScript(silent), await forkScript(silent)]
  const start = new AbortController()
  const started = untilStarted(child, { name: 'It', signal: start.signal })
  start.abort(new Error('interrupted'))
  await expect(started).rejects.toThrow('interrupted')
  const late = untilStarted(other, { name: 'The other', signal: start.signal })
  await expect(late).rejects.toThrow('interrupted')
  expect([child.signalCode, other.signalCode]).toEqual(['SIGKILL', 'SIGKILL'])
})
