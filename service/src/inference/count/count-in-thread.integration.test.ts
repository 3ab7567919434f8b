import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { Cancellation } from '#platform/calls/cancellation.ts'
import { createThreadPool, type ThreadPool } from '#platform/thread-pool.ts'
import { countTexts } from '#tokens/count.ts'
import { hostileTexts, unknownWords } from '#tokens/hostile-texts.ts'
import { type Encoding, encodings } from '#tokens/ranks.ts'

import { createThreadCounter } from './count-in-thread.ts'

const entry = new URL('../../thread.ts', import.meta.url)
const notCancelled = new Cancellation()
const ample = { waitMs: 60_000, runMs: 60_000 }

/** Runs jobs without the limits of time that the counter sets. */
function createPool(threadsMax: number) {
  const pool = createThreadPool({ entry, threadsMax, waitingMax: 10, waitingTotalMax: 50 })
  const patient: ThreadPool = {
    ...pool,
    run: (job, input, terms) => pool.run(job, input, { ...terms, ...ample }),
  }
  return { pool, patient }
}

const { pool, patient } = createPool(1)
const countFor = createThreadCounter(patient)
const count = (encoding: Encoding, texts: readonly string[], cancellation: Cancellation) =>
  countFor(encoding, texts, { owner: 'one', cancellation, patience: 'long' })

beforeAll(async () => {
  // The first use loads the encodings.
  await count('o200k', ['Hello.'], notCancelled)
})
afterAll(() => pool.close())

const megabyte = 1024 * 1024

/** The CPU time of this thread and of the rest of this process. Other processes are not included. */
async function measure(work: () => Promise<unknown>) {
  const [here, all] = [process.threadCpuUsage(), process.cpuUsage()]
  await work()
  const busyMs = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1000
  const loopMs = busyMs(process.threadCpuUsage(here))
  return { loopMs, workerMs: busyMs(process.cpuUsage(all)) - loopMs }
}

describe('hostile texts', () => {
  const words = unknownWords(megabyte)

  test.each(Object.entries(hostileTexts))(
    'a megabyte of %s takes a thread about as long as words, and the event loop hardly any time',
    async (name, make) => {
      const text = make(megabyte)
      const plain = await measure(() => count('o200k', [words], notCancelled))
      let hostile = await measure(() => count('o200k', [text], notCancelled))
      // A garbage collection may fall into one measurement, but not into three.
      for (let more = 0; more < 2 && hostile.loopMs / plain.workerMs >= 0.05; more++) {
        hostile = await measure(() => count('o200k', [text], notCancelled))
      }
      const ratio = hostile.workerMs / plain.workerMs
      const share = hostile.loopMs / plain.workerMs
      console.log(
        `${name}: ${hostile.workerMs.toFixed(0)} ms in the thread, ${ratio.toFixed(2)} times the words; ${hostile.loopMs.toFixed(1)} ms on the event loop, ${share.toFixed(3)}`,
      )
      expect(ratio).toBeLessThan(6)
      expect(share).toBeLessThan(0.05)
    },
  )

  test('a worker thread gives the same counts as the event loop', async () => {
    const texts = Object.values(hostileTexts).map((make) => make(3000))
    for (const encoding of encodings) {
      expect(await count(encoding, texts, notCancelled)).toEqual(
        await countTexts(encoding, texts, () => undefined),
      )
    }
  })

  test('an abort frees the thread: the next count takes less time than a megabyte', async () => {
    const caller = new Cancellation()
    const counting = count('o200k', [hostileTexts['random letters']!(8 * megabyte)], caller)
    setTimeout(() => caller.cancel(new Error('Aborted.')), 100)
    await expect(counting).rejects.toThrow('Aborted.')
    const startedAt = performance.now()
    await count('o200k', ['Hello.'], notCancelled)
    const freedMs = performance.now() - startedAt
    await count('o200k', [words], notCancelled)
    const wordsMs = performance.now() - startedAt - freedMs
    console.log(`freed after ${freedMs.toFixed(0)} ms; a megabyte takes ${wordsMs.toFixed(0)} ms`)
    expect(freedMs).toBeLessThan(wordsMs)
  })
})
