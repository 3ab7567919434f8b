import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { createThreadPool } from '#platform/thread-pool.ts'
import { countTexts } from '#tokens/count.ts'
import { hostileTexts } from '#tokens/hostile-texts.ts'
import { encodings } from '#tokens/ranks.ts'

import { countInThreads } from './count-in-thread.ts'

const entry = new URL('../../thread.ts', import.meta.url)
const threads = createThreadPool({ entry, threadsMax: 1, waitingMax: 10, deadlineMs: 60_000 })
const count = countInThreads(threads)
const forever = new AbortController().signal

beforeAll(async () => {
  // The first use loads the encodings.
  for (const encoding of encodings) await count(encoding, ['Hello.'], forever)
})
afterAll(() => threads.close())

const megabyte = 1024 * 1024

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

/** How long this thread itself was at work: others use the machine too. */
async function ownWorkMs(work: () => Promise<unknown>): Promise<number> {
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

describe('hostile texts', () => {
  test.each(Object.entries(hostileTexts))(
    'a megabyte of %s takes a thread under 3 s, and the event loop no more than a moment',
    async (_name, make) => {
      const text = make(megabyte)
      let largeMs = 0
      const hereMs = await ownWorkMs(async () => {
        largeMs = await timed(() => count('o200k', [text], forever))
      })
      expect(hereMs).toBeLessThan(20)
      // A second look when the machine was busy.
      if (largeMs > 3000) largeMs = await timed(() => count('o200k', [text], forever))
      expect(largeMs).toBeLessThan(3000)
    },
  )

  test('a thread counts as the event loop does', async () => {
    const texts = Object.values(hostileTexts).map((make) => make(3000))
    for (const encoding of encodings) {
      expect(await count(encoding, texts, forever)).toEqual(
        await countTexts(encoding, texts, () => undefined),
      )
    }
  })

  test('a caller who leaves frees the thread within a moment', async () => {
    const leaving = new AbortController()
    const counting = count('o200k', [hostileTexts['random letters']!(8 * megabyte)], leaving.signal)
    setTimeout(() => leaving.abort(new Error('Left.')), 100)
    await expect(counting).rejects.toThrow('Left.')
    expect(await timed(() => count('o200k', ['Hello.'], forever))).toBeLessThan(900)
  })
})
