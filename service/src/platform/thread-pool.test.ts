import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { createThreadPool } from './thread-pool.ts'

const server = new URL('./serve-thread.ts', import.meta.url).href
const source = `
import { serveThread } from ${JSON.stringify(server)}
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
let jobsDone = 0
serveThread({
  double: async (input) => { jobsDone++; return input * 2 },
  jobsDone: async () => jobsDone,
  fail: async () => { throw new Error('No luck.') },
  crash: async () => { setImmediate(() => { throw new Error('Crashed.') }); await wait(60000) },
  exit: async () => { process.exit(3) },
  hang: async () => { for (;;); },
  untilCancelled: async (_input, isCancelled) => { while (!isCancelled()) await wait(2); return 'stopped' },
})
`
let directory: string
let entry: URL
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gatehouse-thread-'))
  entry = pathToFileURL(join(directory, 'thread.mjs'))
  await writeFile(entry, source)
})
afterAll(() => rm(directory, { recursive: true }))

const forever = new AbortController().signal

function createPool(changes: Partial<Parameters<typeof createThreadPool>[0]> = {}) {
  const pool = createThreadPool({
    entry,
    threadsMax: 1,
    waitingMax: 10,
    deadlineMs: 20_000,
    graceMs: 50,
    ...changes,
  })
  onTestFinished(() => pool.close())
  return pool
}

describe('a pool of threads', () => {
  test('answers every job with its own output', async () => {
    const pool = createPool({ threadsMax: 2 })
    const answers = await Promise.all([1, 2, 3, 4, 5].map((n) => pool.run('double', n, forever)))
    expect(answers).toEqual([2, 4, 6, 8, 10])
  })

  test('a job that fails fails alone, and its thread goes on', async () => {
    const pool = createPool()
    await pool.run('double', 1, forever)
    await expect(pool.run('fail', null, forever)).rejects.toThrow('No luck.')
    await expect(pool.run('unheard', null, forever)).rejects.toThrow('There is no job unheard.')
    expect(await pool.run('jobsDone', null, forever)).toBe(1)
  })

  test.each(['crash', 'exit'])('a thread that dies (%s) is replaced', async (job) => {
    const pool = createPool()
    const lost = pool.run(job, null, forever)
    const behind = pool.run('double', 21, forever)
    await expect(lost).rejects.toThrow('The thread has died.')
    expect(await behind).toBe(42)
  })

  test('more jobs than may wait are refused at once', async () => {
    const pool = createPool({ waitingMax: 1 })
    const leaving = new AbortController()
    const running = pool.run('untilCancelled', null, leaving.signal)
    const waiting = pool.run('double', 1, forever)
    await expect(pool.run('double', 2, forever)).rejects.toMatchObject({ code: 'overloaded' })
    leaving.abort(new Error('Left.'))
    await expect(running).rejects.toThrow('Left.')
    expect(await waiting).toBe(2)
  })

  test('an aborted job rejects at once, and its thread takes the next one', async () => {
    const pool = createPool({ graceMs: 10_000 })
    await pool.run('double', 1, forever)
    const leaving = new AbortController()
    const running = pool.run('untilCancelled', null, leaving.signal)
    const inLine = pool.run('double', 5, leaving.signal)
    leaving.abort(new Error('Left.'))
    await expect(running).rejects.toThrow('Left.')
    await expect(inLine).rejects.toThrow('Left.')
    // The same thread, and the job that was still in line never ran.
    expect(await pool.run('jobsDone', null, forever)).toBe(1)
  })

  test('a job whose signal has aborted already is not started', async () => {
    const pool = createPool()
    const gone = AbortSignal.abort(new Error('Gone.'))
    await expect(pool.run('double', 1, gone)).rejects.toThrow('Gone.')
  })

  test('a job past its deadline rejects, and a thread that hangs is terminated', async () => {
    const pool = createPool({ deadlineMs: 2000 })
    await pool.run('double', 1, forever)
    const hanging = pool.run('hang', null, forever)
    await expect(hanging).rejects.toMatchObject({ code: 'overloaded' })
    expect(await pool.run('double', 4, forever)).toBe(8)
  })

  test('a closed pool refuses new jobs and rejects the waiting ones', async () => {
    const pool = createPool()
    const running = pool.run('untilCancelled', null, forever)
    const waiting = pool.run('double', 1, forever)
    const outcomes = Promise.allSettled([running, waiting])
    await pool.close()
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await expect(pool.run('double', 1, forever)).rejects.toMatchObject({ code: 'overloaded' })
  })
})
