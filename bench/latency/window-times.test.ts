import { expect, test } from 'vitest'

import { addedTimeOf, timesOf } from './window-times.ts'

const window = (p50: number, p99: number, firstP99 = p99) => ({ p50, p99, firstP99 })

test('percentiles of a window are of whole answers, and of the first token', () => {
  const whole = Array.from({ length: 100 }, (_, index) => index + 1)
  expect(timesOf({ whole, first: [7] })).toEqual({ p50: 50, p99: 99, firstP99: 7 })
})

test('added time is the least window of each; a disturbed window of the bare proxy makes nothing look faster', () => {
  const bare = [window(1, 2, 1), window(30, 90, 90), window(2, 3, 3)]
  const gatehouse = [window(4, 12, 8), window(3.5, 30, 9), window(8, 40, 20)]
  expect(addedTimeOf('stream', bare, gatehouse)).toEqual({
    streamP50: { value: 2.5, median: 2 },
    streamP99: { value: 10, median: 27, holds: true },
    firstTokenP99: { value: 7, median: 6 },
  })
  expect(addedTimeOf('plain', bare, gatehouse)).not.toHaveProperty('firstTokenP99')
})

test('a p99 may be above 15 ms where the bare proxy is slow itself', () => {
  const holds = (bare: number, own: number) =>
    addedTimeOf('plain', [window(1, bare)], [window(2, own)]).plainP99?.holds
  expect(holds(2, 17)).toBe(true)
  expect(holds(2, 17.5)).toBe(false)
  expect(holds(10, 30)).toBe(true)
})
