import fc from 'fast-check'
import { expect, test } from 'vitest'

import { wilsonInterval } from './wilson.ts'

test.each([
  [0, 10, 0, 0.2775],
  [1, 10, 0.0179, 0.4042],
  [5, 10, 0.2366, 0.7634],
  [10, 10, 0.7225, 1],
  [10, 1000, 0.0054, 0.0183],
])('%i of %i: from %f to %f', (hits, trials, low, high) => {
  const interval = wilsonInterval(hits, trials)
  expect(interval.low).toBeCloseTo(low, 4)
  expect(interval.high).toBeCloseTo(high, 4)
})

test('without trials nothing is known', () => {
  expect(wilsonInterval(0, 0)).toEqual({ low: 0, high: 1 })
})

test('the interval is within 0 and 1, and has the share that was seen', () => {
  const seen = fc
    .integer({ min: 1, max: 1_000_000 })
    .chain((trials) => fc.tuple(fc.integer({ min: 0, max: trials }), fc.constant(trials)))
  fc.assert(
    fc.property(seen, ([hits, trials]) => {
      const { low, high } = wilsonInterval(hits, trials)
      const rounding = 1e-12
      expect(low).toBeGreaterThanOrEqual(0)
      expect(low).toBeLessThanOrEqual(hits / trials + rounding)
      expect(high).toBeGreaterThanOrEqual(hits / trials - rounding)
      expect(high).toBeLessThanOrEqual(1)
    }),
  )
})
