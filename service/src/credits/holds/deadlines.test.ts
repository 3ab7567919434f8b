import { setTimeout as sleep } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { createDeadlines } from './deadlines.ts'

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
