import { waitUntil } from '@gatehouse/tools/testing/wait-until'
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

/** Runs jobs without the limits of time that the counter sets; a thread is never terminated because it is slow to stop. */
function createPool(threadsMax: number) {
  const pool = createThreadPool({
    entry,
    threadsMax,
    waitingMax: 10,
    waitingTotalMax: 50,
    graceMs: ample.runMs,
  })
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

/** The CPU time of this thread and of the rest of this process, from now on. Other processes are not included. */
function startMeasuring() {
  const [here, all] = [process.threadCpuUsage(), process.cpuUsage()]
  const busyMs = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1000
  return () => {
    const loopMs = busyMs(process.threadCpuUsage(here))
    return { loopMs, workerMs: busyMs(process.cpuUsage(all)) - loopMs }
  }
}

async function measure(work: () => Promise<unknown>) {
  const measured = startMeasuring()
  await work()
  return measured()
}

describe('hostile texts', () => {
  const words = unknownWords(megabyte)
  const ratioMax = 6
  const shareMax = 0.05

  test.each(Object.entries(hostileTexts))(
    'a megabyte of %s takes a thread about as long as words, and the event loop hardly any time',
    async (name, make) => {
      const text = make(megabyte)
      let [ratio, share] = [Infinity, Infinity]
      // A garbage collection or a neighbour may spoil a round, but not every one.
      for (let round = 0; round < 5 && (ratio >= ratioMax || share >= shareMax); round++) {
        const plain = await measure(() => count('o200k', [words], notCancelled))
        const hostile = await measure(() => count('o200k', [text], notCancelled))
        ratio = Math.min(ratio, hostile.workerMs / plain.workerMs)
        share = Math.min(share, hostile.loopMs / plain.workerMs)
        console.log(
          `${name}: ${hostile.workerMs.toFixed(0)} ms in the thread, ${ratio.toFixed(2)} times the words; ${hostile.loopMs.toFixed(1)} ms on the event loop, ${share.toFixed(3)}`,
        )
      }
      expect(ratio).toBeLessThan(ratioMax)
      expect(share).toBeLessThan(shareMax)
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
    const text = hostileTexts['random letters']!(8 * megabyte)
    const plain = await measure(() => count('o200k', [words], notCancelled))
    const caller = new Cancellation()
    const counting = startMeasuring()
    const counted = count('o200k', [text], caller)
    // By then it is counting, and far from the end: this is a small part of what eight megabytes take.
    await waitUntil(() => counting().workerMs > plain.workerMs / 2)
    caller.cancel(new Error('Aborted.'))
    const freed = await measure(async () => {
      await expect(counted).rejects.toThrow('Aborted.')
      await count('o200k', ['Hello.'], notCancelled)
    })
    console.log(
      `freed after ${freed.workerMs.toFixed(0)} ms; a megabyte takes ${plain.workerMs.toFixed(0)} ms`,
    )
    expect(freed.workerMs).toBeLessThan(plain.workerMs)
  })
})
