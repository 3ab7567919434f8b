import fc from 'fast-check'
import { expect, test } from 'vitest'

import {
  addHistogram,
  histogramBucketOf,
  fromCells,
  noteValue,
  percentilesOf,
  toCells,
} from './histogram.ts'

const times = fc.array(fc.integer({ min: 0, max: 15_000_000 }), { minLength: 1, maxLength: 300 })
const histogramOf = (values: readonly number[]) => {
  const histogram = new Map<number, number>()
  for (const value of values) noteValue(histogram, value)
  return histogram
}

test('percentiles are within a tenth of the true ones', () => {
  fc.assert(
    fc.property(times, (values) => {
      const sorted = values.toSorted((one, other) => one - other)
      const told = percentilesOf(histogramOf(values))
      for (const [share, ms] of [
        [0.5, told?.p50_ms],
        [0.95, told?.p95_ms],
        [0.99, told?.p99_ms],
      ] as const) {
        const exact = sorted[Math.ceil(share * sorted.length) - 1]!
        // Half a millisecond, because answers are whole.
        expect(Math.abs((ms ?? NaN) - exact)).toBeLessThanOrEqual(Math.max(1, exact * 0.1 + 0.5))
      }
    }),
  )
})

test('histograms that are added say what one of all values says', () => {
  fc.assert(
    fc.property(times, times, (some, others) => {
      const sum = histogramOf(some)
      addHistogram(sum, histogramOf(others))
      expect(toCells(sum)).toEqual(toCells(histogramOf([...some, ...others])))
      expect(toCells(fromCells(toCells(sum)))).toEqual(toCells(sum))
    }),
  )
})

test('no values have no percentiles, and the longest share a bucket', () => {
  expect(percentilesOf(new Map())).toBeNull()
  expect(histogramBucketOf(0)).toBe(0)
  expect(histogramBucketOf(2 ** 24)).toBe(histogramBucketOf(1e12))
})
