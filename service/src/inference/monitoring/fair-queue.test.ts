import { setTimeout as sleep } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { createFairQueue } from './fair-queue.ts'

const plenty = { entries: 100, bytes: 1000 }

function open(sizes: Partial<Parameters<typeof createFairQueue>[0]> = {}) {
  const began: string[] = []
  const dropped: string[] = []
  const endings: (() => void)[] = []
  let waiting = 0
  const queue = createFairQueue({
    atOnce: 1,
    most: plenty,
    mostOfOne: plenty,
    onWaiting: (count) => void (waiting = count),
    ...sizes,
  })
  /** False if there is no room. */
  function add(owner: string, bytes = 1): boolean {
    const begin = queue.reserve(owner, bytes)
    begin?.({
      async run(signal) {
        began.push(owner)
        await new Promise<void>((resolve) => {
          endings.push(resolve)
          signal.addEventListener('abort', () => resolve())
        })
      },
      drop: async () => void dropped.push(owner),
    })
    return begin !== null
  }
  async function endOne() {
    endings.shift()?.()
    await sleep(1)
  }
  return { queue, add, endOne, began, dropped, waiting: () => waiting }
}

test('organizations take turns, whatever one of them has added', async () => {
  const { add, endOne, began } = open()
  for (const owner of ['a', 'a', 'a', 'a', 'b', 'c', 'b']) add(owner)
  await sleep(1)
  for (let number = 0; number < 7; number++) await endOne()
  expect(began).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a'])
})

test('so much runs at once, and begins in a later turn', async () => {
  const { add, began, waiting } = open({ atOnce: 2 })
  for (let number = 0; number < 5; number++) add('a')
  expect([began.length, waiting()]).toEqual([0, 5])
  await sleep(1)
  expect([began.length, waiting()]).toEqual([2, 3])
})

test('what runs and what waits is bounded, in all and for each organization', async () => {
  const { add, endOne } = open({
    most: { entries: 4, bytes: 100 },
    mostOfOne: { entries: 3, bytes: 60 },
  })
  expect([add('a'), add('a'), add('a'), add('a')]).toEqual([true, true, true, false])
  await sleep(1)
  expect([add('b'), add('b')]).toEqual([true, false])
  await endOne()
  expect([add('b', 61), add('b', 60), add('c')]).toEqual([false, false, true])
  for (let number = 0; number < 4; number++) await endOne()
  expect([add('a', 60), add('b', 41), add('b', 40)]).toEqual([true, false, true])
})

test('stopping waits for what runs and waits, and takes no more', async () => {
  const { queue, add, endOne, began, dropped } = open()
  add('a')
  add('b')
  await sleep(1)
  const stopped = queue.stop(10_000)
  expect(add('c')).toBe(false)
  await endOne()
  await endOne()
  await stopped
  expect([began, dropped]).toEqual([['a', 'b'], []])
})

test('stopping drops what waits for too long, and ends what runs', async () => {
  const { queue, add, began, dropped, waiting } = open()
  for (const owner of ['a', 'b', 'b']) add(owner)
  await sleep(1)
  await queue.stop(20)
  expect([began, dropped, waiting()]).toEqual([['a'], ['b', 'b'], 0])
})

test('an empty queue stops at once', async () => {
  const { queue, add } = open()
  await queue.stop(10_000)
  expect(add('a')).toBe(false)
})
