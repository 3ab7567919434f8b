import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'

import { createThreadPool, type JobTerms, type ThreadPool } from './thread-pool.ts'

const server = new URL('./serve-thread.ts', import.meta.url).href
const source = `
import { threadId } from 'node:worker_threads'
import { serveThread } from ${JSON.stringify(server)}
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
let jobsDone = 0
serveThread({
  double: async (input) => { jobsDone++; return input * 2 },
  jobsDone: async () => jobsDone,
  thread: async () => threadId,
  fail: async () => { throw new Error('No luck.') },
  crash: async () => { setImmediate(() => { throw new Error('Crashed.') }); await wait(60000) },
  exit: async () => { process.exit(3) },
  hang: async () => { for (;;); },
  name: async (input) => input,
  slowly: async (input, isCancelled) => {
    for (let step = 0; step < 50; step++) { await wait(2); if (isCancelled()) throw new Error('Cancelled.') }
    return input * 2
  },
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

const terms = (changes: Partial<JobTerms> = {}): JobTerms => ({
  owner: 'one',
  waitMs: 20_000,
  runMs: 20_000,
  signal: new AbortController().signal,
  ...changes,
})
const forever = terms()

function createPool(changes: Partial<Parameters<typeof createThreadPool>[0]> = {}) {
  const pool = createThreadPool({
    entry,
    threadsMax: 1,
    waitingMax: 10,
    waitingTotalMax: 30,
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

  test('a job gets the thread that has worked for its owner last, if it is free', async () => {
    const pool = createPool({ threadsMax: 2 })
    const threadOf = (owner: string) => pool.run('thread', null, terms({ owner }))
    pool.start()
    let [first, second]: unknown[] = []
    await vi.waitUntil(async () => {
      ;[first, second] = await Promise.all([threadOf('first'), threadOf('second')])
      return first !== second // both threads are ready
    })
    for (const owner of ['second', 'first', 'first', 'second', 'second']) {
      expect(await threadOf(owner)).toBe(owner === 'first' ? first : second)
    }
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
    await pool.run('double', 1, forever)
    const leaving = new AbortController()
    const running = pool.run('untilCancelled', null, terms({ signal: leaving.signal }))
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
    const running = pool.run('untilCancelled', null, terms({ signal: leaving.signal }))
    const inLine = pool.run('double', 5, terms({ signal: leaving.signal }))
    leaving.abort(new Error('Left.'))
    await expect(running).rejects.toThrow('Left.')
    await expect(inLine).rejects.toThrow('Left.')
    // The same thread, and the job that was still in line never ran.
    expect(await pool.run('jobsDone', null, forever)).toBe(1)
  })

  test('an owner has no more threads than it may, also while others are idle', async () => {
    const pool = createPool({ threadsMax: 2, threadsPerOwnerMax: 1 })
    const leaving = new AbortController()
    const running = pool.run('untilCancelled', null, terms({ signal: leaving.signal }))
    const ended: string[] = []
    const behind = pool.run('double', 1, forever).then(() => ended.push('behind'))
    const other = pool.run('double', 2, terms({ owner: 'two' })).then(() => ended.push('other'))
    await other
    // Both threads are there: the other owner has just used the second one.
    await pool.run('double', 3, terms({ owner: 'two' }))
    expect(ended).toEqual(['other'])
    leaving.abort(new Error('Left.'))
    await expect(running).rejects.toThrow('Left.')
    await behind
  })

  test('nor has an owner more of them by leaving jobs that do not end at once', async () => {
    const pool = createPool({ threadsMax: 2, threadsPerOwnerMax: 1, graceMs: 300 })
    await Promise.all([
      pool.run('double', 1, forever),
      pool.run('double', 1, terms({ owner: 'two' })),
    ])
    const leaving = new AbortController()
    const hanging = pool.run('hang', null, terms({ signal: leaving.signal }))
    leaving.abort(new Error('Left.'))
    await expect(hanging).rejects.toThrow('Left.')
    const ended: string[] = []
    const next = pool.run('double', 1, forever).then(() => ended.push('next'))
    await pool.run('double', 2, terms({ owner: 'two' })).then(() => ended.push('other'))
    await next
    expect(ended).toEqual(['other', 'next'])
  })

  test('a job whose signal has aborted already is not started', async () => {
    const pool = createPool()
    const gone = AbortSignal.abort(new Error('Gone.'))
    await expect(pool.run('double', 1, terms({ signal: gone }))).rejects.toThrow('Gone.')
  })

  test('a job that runs too long rejects, and a thread that hangs is terminated', async () => {
    const pool = createPool()
    await pool.run('double', 1, forever)
    const hanging = pool.run('hang', null, terms({ runMs: 500 }))
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

describe('owners share the threads', () => {
  /** Occupies threads; `end` ends the jobs of an owner. */
  function occupy(pool: ThreadPool, owner: string, jobs: number) {
    const leaving = new AbortController()
    const running = Array.from({ length: jobs }, () =>
      pool.run('untilCancelled', null, terms({ owner, signal: leaving.signal })),
    )
    const ended = Promise.allSettled(running)
    return async () => {
      leaving.abort(new Error('Left.'))
      return (await ended).map(({ status }) => status)
    }
  }

  async function createReadyPool(threadsMax: number) {
    const pool = createPool({ threadsMax })
    pool.start()
    const owners = Array.from({ length: threadsMax }, (_, index) => `starter ${index}`)
    const ends = owners.map((owner) => occupy(pool, owner, 1))
    await Promise.all(ends.map((end) => end()))
    return pool
  }

  test('in turn, and not in the order of their jobs', async () => {
    const pool = await createReadyPool(1)
    const end = occupy(pool, 'busy', 1)
    const served: string[] = []
    const ask = async (owner: string, name: string) =>
      served.push(String(await pool.run('name', name, terms({ owner }))))
    const jobs = [
      ...['a1', 'a2', 'a3'].map((name) => ask('a', name)),
      ...['b1', 'b2'].map((name) => ask('b', name)),
      ask('c', 'c1'),
    ]
    await end()
    await Promise.all(jobs)
    expect(served).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
  })

  test('an owner that has all threads gives one up when another asks, and gets it back', async () => {
    const pool = await createReadyPool(2)
    const end = occupy(pool, 'greedy', 2)
    expect(await pool.run('double', 4, terms({ owner: 'modest' }))).toBe(8)
    // Both jobs of the greedy owner are running again: a third one has to wait.
    const late = pool.run('double', 1, terms({ owner: 'greedy', waitMs: 200 }))
    await expect(late).rejects.toMatchObject({ code: 'overloaded' })
    expect(await end()).toEqual(['rejected', 'rejected'])
  })

  test('a job that gives way starts again later and is answered', async () => {
    const pool = await createReadyPool(2)
    const endFirst = occupy(pool, 'greedy', 1)
    const second = pool.run('slowly', 21, terms({ owner: 'greedy' }))
    const endModest = occupy(pool, 'modest', 1)
    await endModest()
    expect(await second).toBe(42)
    await endFirst()
  })

  test('a job that waits too long rejects and never runs', async () => {
    const pool = await createReadyPool(1)
    const end = occupy(pool, 'busy', 1)
    const waiting = pool.run('double', 1, terms({ owner: 'late', waitMs: 50 }))
    await expect(waiting).rejects.toMatchObject({ code: 'overloaded' })
    await end()
    expect(await pool.run('jobsDone', null, forever)).toBe(0)
  })

  test('one owner cannot take the places of others to wait', async () => {
    const pool = createPool({ waitingMax: 2, waitingTotalMax: 3 })
    await pool.run('double', 1, forever)
    const end = occupy(pool, 'greedy', 3)
    await expect(pool.run('double', 1, terms({ owner: 'greedy' }))).rejects.toMatchObject({
      code: 'overloaded',
    })
    const modest = pool.run('double', 1, terms({ owner: 'modest' }))
    await expect(pool.run('double', 1, terms({ owner: 'third' }))).rejects.toMatchObject({
      code: 'overloaded',
    })
    await end()
    expect(await modest).toBe(2)
  })
})
