import { afterAll, beforeAll, expect, test } from 'vitest'

import { emptyTurn, type Turn } from '#formats/turn.ts'
import type { CatalogueModel } from '#inference/upstreams/catalogue.ts'
import { threadEntry } from '#platform/assets.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import { createOriginPools } from '#platform/origin-pools.ts'
import { createThreadPool } from '#platform/thread-pool.ts'

import { createThreadCounter } from './count-in-thread.ts'
import { createFittedFactors } from './fitted-factor.ts'
import { createInputCounting } from './input-counting.ts'

const threads = createThreadPool({
  entry: threadEntry,
  threadsMax: 2,
  waitingMax: 10,
  waitingTotalMax: 200,
})
const pools = createOriginPools()
const counting = createInputCounting({
  threads,
  pools,
  factors: createFittedFactors(),
  findRefusedMediaUrl: async () => null,
  now: () => new Date(),
})
const cancellation = new Cancellation()
const countSlowly = createThreadCounter({
  ...threads,
  run: (job, input, terms) =>
    threads.run(job, input, { ...terms, waitMs: 120_000, runMs: 120_000 }),
})

beforeAll(async () => {
  const asker = { cancellation, patience: 'long' } as const
  const owners = ['one', 'two'].map((owner) =>
    countSlowly('o200k', ['Hello.'], { ...asker, owner }),
  )
  await Promise.all([counting.warm(new Set(['o200k'] as const)), ...owners])
})
afterAll(async () => {
  await threads.close()
  await pools.close()
})

const model = {
  id: 'm',
  encoding: 'o200k',
  isEncodingExact: true,
  tokenFactor: 1,
} as unknown as CatalogueModel

let sent = 0
/** No two texts are equal, because counts are cached. */
function estimate(owner: string, text: string) {
  const parts = [{ type: 'text' as const, text: `${++sent} ${text}` }]
  const turn: Turn = { ...emptyTurn, messages: [{ role: 'user', parts }] }
  return counting.estimate({ turn, model, hasUnseenInput: false }, { owner, cancellation })
}

async function measure(work: () => Promise<unknown>) {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

const words = Array.from({ length: 40_000 }, (_, index) => `word${(index * 7919) % 10_007}`).join(
  ' ',
)
const slowText = 'ab'.repeat(3_900_000)

test('texts that are slow to count do not make other organizations wait', async () => {
  const eighth = slowText.slice(0, slowText.length / 8)
  const asker = { owner: 'one', cancellation, patience: 'long' } as const
  const slowMs = 8 * (await measure(() => countSlowly('o200k', [eighth], asker)))
  let isOver = false
  const senders = ['one', 'one', 'two', 'two'].map(async (owner) => {
    while (!isOver) await estimate(owner, slowText)
  })
  const waits: number[] = []
  for (let call = 0; call < 8; call++) {
    waits.push(await measure(() => estimate('neighbour', words)))
  }
  isOver = true
  await Promise.all(senders)
  const longest = Math.max(...waits)
  const shown = waits.map((ms) => ms.toFixed(0)).join(', ')
  console.log(`a slow text takes ${slowMs.toFixed(0)} ms; a neighbour waits ${shown} ms`)
  expect(longest / slowMs).toBeLessThan(0.25)
})

test('a text that cannot be counted soon is estimated, and too high', async () => {
  const { tokens, localTokens, origin } = await estimate('one', slowText)
  expect([localTokens, origin]).toEqual([0, 'local-estimate'])
  expect(tokens).toBeGreaterThan(slowText.length / 2)
})
