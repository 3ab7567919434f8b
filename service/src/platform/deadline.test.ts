import { expect, onTestFinished, test } from 'vitest'

import { within } from './deadline.ts'

const late = () => new Error('too late')

test('a result in time is returned, and an error is passed on', async () => {
  expect(await within(1000, late, () => Promise.resolve('done'))).toBe('done')
  await expect(within(1000, late, () => Promise.reject(new Error('own')))).rejects.toThrow('own')
})

test('work that takes too long is rejected, and its signal aborts', async () => {
  let heard: AbortSignal | undefined
  const endless = within(20, late, (signal) => {
    heard = signal
    return new Promise<never>(() => undefined)
  })
  await expect(endless).rejects.toThrow('too late')
  expect(heard?.aborted).toBe(true)
})

/** Keeps the event loop busy: every turn takes this long. */
function makeTurnsLong(ms: number) {
  let isBusy = true
  const turn = () => {
    const end = performance.now() + ms
    while (performance.now() < end);
    if (isBusy) setImmediate(turn)
  }
  turn()
  return () => {
    isBusy = false
  }
}

test('a busy event loop has a few turns to read an answer, however long they are', async () => {
  const stop = makeTurnsLong(100)
  onTestFinished(stop)
  const twoTurns = () =>
    new Promise((resolve) => {
      setImmediate(() => setImmediate(() => resolve('done')))
    })
  expect(await within(10, late, twoTurns)).toBe('done')
  await expect(within(10, late, () => new Promise<never>(() => undefined))).rejects.toThrow(
    'too late',
  )
})
