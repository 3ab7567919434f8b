import { expect, test } from 'vitest'

import { createGate } from './gate.ts'

const hold = () => Promise.withResolvers<void>()
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('each name runs at most `atOnce` works, the rest wait in order', async () => {
  const gate = createGate({ atOnce: 2, waitingMax: 10, waitMs: 1000 })
  const holds = [hold(), hold(), hold(), hold()]
  const started: number[] = []
  const works = holds.map(({ promise }, index) =>
    gate('one', () => {
      started.push(index)
      return promise
    }),
  )
  await settled()
  expect(started).toEqual([0, 1])
  holds[1]?.resolve()
  await settled()
  expect(started).toEqual([0, 1, 2])
  for (const each of holds) each.resolve()
  await Promise.all(works)
  expect(started).toEqual([0, 1, 2, 3])
})

test('one name does not wait for another', async () => {
  const gate = createGate({ atOnce: 1, waitingMax: 10, waitMs: 1000 })
  const busy = hold()
  const work = gate('busy', () => busy.promise)
  expect(await gate('idle', () => Promise.resolve('done'))).toBe('done')
  busy.resolve()
  await work
})

test('a full queue refuses, and a failure frees its slot', async () => {
  const gate = createGate({ atOnce: 1, waitingMax: 1, waitMs: 1000 })
  const first = hold()
  const failing = gate('one', () => first.promise)
  const second = gate('one', () => Promise.resolve('second'))
  await expect(gate('one', () => Promise.resolve())).rejects.toThrow('are waiting')
  first.reject(new Error('failed'))
  await expect(failing).rejects.toThrow('failed')
  expect(await second).toBe('second')
  expect(await gate('one', () => Promise.resolve('third'))).toBe('third')
})

test('work that waited too long is refused and never run', async () => {
  const gate = createGate({ atOnce: 1, waitingMax: 10, waitMs: 30 })
  const busy = hold()
  const work = gate('one', () => busy.promise)
  let isServed = false
  const late = gate('one', async () => {
    isServed = true
  })
  await expect(late).rejects.toThrow('are waiting')
  busy.resolve()
  await work
  expect(await gate('one', () => Promise.resolve('next'))).toBe('next')
  expect(isServed).toBe(false)
})
