import { setImmediate as nextTurn } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { createBatched, TooManyWaiting } from './batched.ts'

/** Doubles numbers; each batch ends when `endBatch` is called. */
function createDoubling(limits: { sizeMax?: number; waitingMax?: number } = {}) {
  const begun: (readonly number[])[] = []
  const ends: PromiseWithResolvers<void>[] = []
  const double = createBatched({
    sizeMax: 100,
    waitingMax: 100,
    ...limits,
    run: async (items: readonly number[]) => {
      const end = Promise.withResolvers<void>()
      begun.push(items)
      ends.push(end)
      await end.promise
      return items.map((item) => item * 2)
    },
  })
  const endBatch = async (error?: Error) => {
    await turns()
    const end = ends.shift()!
    if (error) end.reject(error)
    else end.resolve()
    await turns()
  }
  return { begun, double, endBatch }
}

async function turns() {
  for (let turn = 0; turn < 3; turn++) await nextTurn()
}

test('items that arrive during a batch go into the next one, and each gets its own result', async () => {
  const { begun, double, endBatch } = createDoubling()
  const first = [double(1), double(2)]
  await turns()
  const second = [double(3), double(4), double(5)]
  await turns()
  expect(begun).toEqual([[1, 2]])
  await endBatch()
  expect(await Promise.all(first)).toEqual([2, 4])
  expect(begun).toEqual([
    [1, 2],
    [3, 4, 5],
  ])
  await endBatch()
  expect(await Promise.all(second)).toEqual([6, 8, 10])
})

test('items added again right after a batch share the next one', async () => {
  const { begun, double, endBatch } = createDoubling()
  const worker = async (item: number) => {
    await double(item)
    await double(item + 10)
  }
  const working = Promise.all([worker(1), worker(2), worker(3)])
  await endBatch()
  await endBatch()
  await working
  expect(begun).toEqual([
    [1, 2, 3],
    [11, 12, 13],
  ])
})

test('a batch has at most its size, in the order of arrival', async () => {
  const { begun, double, endBatch } = createDoubling({ sizeMax: 2 })
  const results = [1, 2, 3, 4, 5].map((item) => double(item))
  for (let batch = 0; batch < 3; batch++) await endBatch()
  await Promise.all(results)
  expect(begun).toEqual([[1, 2], [3, 4], [5]])
})

test('a full queue refuses at once, and accepts items again when it has space', async () => {
  const { double, endBatch } = createDoubling({ waitingMax: 2 })
  const running = double(1)
  await turns()
  const waiting = [double(2), double(3)]
  await expect(double(4)).rejects.toBeInstanceOf(TooManyWaiting)
  await endBatch()
  const later = double(5)
  await endBatch()
  await endBatch()
  expect(await Promise.all([running, ...waiting, later])).toEqual([2, 4, 6, 10])
})

test('a batch that fails rejects its own items only', async () => {
  const { double, endBatch } = createDoubling()
  const failing = [double(1), double(2)].map((each) => each.catch((error: Error) => error.message))
  await turns()
  const next = double(3)
  await endBatch(new Error('broken'))
  await endBatch()
  expect(await Promise.all([...failing, next])).toEqual(['broken', 'broken', 6])
})

test('a batch with the wrong number of results fails', async () => {
  const lossy = createBatched({
    sizeMax: 10,
    waitingMax: 10,
    run: (items: readonly number[]) => Promise.resolve(items.slice(1)),
  })
  const results = await Promise.allSettled([lossy(1), lossy(2)])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})

test('an item whose signal has aborted is not started', async () => {
  const { begun, double, endBatch } = createDoubling()
  const givingUp = new AbortController()
  const first = double(1, givingUp.signal)
  await turns()
  const second = double(2, givingUp.signal).catch((error: Error) => error.message)
  const third = double(3)
  givingUp.abort(new Error('given up'))
  await endBatch()
  await endBatch()
  expect(await Promise.all([first, second, third])).toEqual([2, 'given up', 6])
  expect(begun).toEqual([[1], [3]])
})
