import { expect, test } from 'vitest'

import { createRestartDelay } from './restart-delay.ts'

const served = (ms: number, times: number) => Array.from({ length: times }, () => ms)

test('the delay doubles from 0.1 to 10 seconds', () => {
  const delay = createRestartDelay()
  expect(served(0, 9).map(delay.next)).toEqual([
    100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000,
  ])
})

test('a process that has served for a minute is started again at once', () => {
  const delay = createRestartDelay()
  served(59_999, 5).forEach(delay.next)
  expect([60_000, 0, 0].map(delay.next)).toEqual([100, 200, 400])
})

test('after a thousand ends the delay is still a number of milliseconds', () => {
  expect(served(0, 2000).map(createRestartDelay().next).at(-1)).toBe(10_000)
})
