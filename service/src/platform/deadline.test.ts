import { setTimeout as sleep } from 'node:timers/promises'

import { expect, onTestFinished, test } from 'vitest'

import { createDeadlines, within } from './deadline.ts'

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

test('work ends with the outer signal, with its reason, and before it begins if that has aborted', async () => {
  const outer = new AbortController()
  let heard: AbortSignal | undefined
  const endless = (signal: AbortSignal) => {
    heard = signal
    return new Promise<never>(() => undefined)
  }
  const waiting = within(10_000, late, endless, outer.signal)
  outer.abort(new Error('given up'))
  await expect(waiting).rejects.toThrow('given up')
  expect(heard?.reason).toEqual(new Error('given up'))
  heard = undefined
  await expect(within(10_000, late, endless, outer.signal)).rejects.toThrow('given up')
  expect(heard).toBeUndefined()
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

test('each deadline comes once, in their order and not too early; one that was taken back never comes', async () => {
  const deadlines = createDeadlines(40)
  const late: { name: string; isEarly: boolean }[] = []
  const watch = (name: string) => {
    const deadline = deadlines.set(() => {
      late.push({ name, isEarly: performance.now() < deadline.atMs })
    })
    return deadline
  }
  watch('first')
  const takenBack = watch('taken back')
  await sleep(20)
  watch('second')
  deadlines.takeBack(takenBack)
  await expect.poll(() => late.length).toBe(2)
  expect(late).toEqual([
    { name: 'first', isEarly: false },
    { name: 'second', isEarly: false },
  ])
})

test('after all deadlines have passed or were taken back, a new one is watched again', async () => {
  const deadlines = createDeadlines(10)
  deadlines.takeBack(deadlines.set(() => undefined))
  await sleep(30)
  let isLate = false
  deadlines.set(() => (isLate = true))
  await expect.poll(() => isLate).toBe(true)
})

test('a process that is busy beyond the deadline gets the answers that have arrived meanwhile', async () => {
  const deadlines = createDeadlines(10)
  let isLate = false
  const deadline = deadlines.set(() => (isLate = true))
  const until = performance.now() + 40
  // The answer arrives while the process computes, and is read in the turn after the timer.
  setImmediate(() => {
    while (performance.now() < until);
    setImmediate(() => setImmediate(() => deadlines.takeBack(deadline)))
  })
  await sleep(80)
  expect(isLate).toBe(false)
})
