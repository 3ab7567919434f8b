import { expect, test } from 'vitest'

import { waitAfterFailure, waitForProbeMs } from './wait-after-failure.ts'

test('the bound doubles with each failure, up to five minutes', () => {
  const bounds = [0, 1, 2, 8, 9, 100].map((failures) => waitAfterFailure(failures, 0, () => 1))
  expect(bounds).toEqual([1000, 2000, 4000, 256_000, 300_000, 300_000])
  expect(waitAfterFailure(3, 0, () => 0)).toBe(0)
})

test('a destination may ask for more time, up to an hour', () => {
  expect(waitAfterFailure(0, 90_000, () => 0.5)).toBe(90_000)
  expect(waitAfterFailure(9, 1000, () => 1)).toBe(300_000)
  expect(waitAfterFailure(0, 1e9, () => 0)).toBe(3_600_000)
})

test('a wrong configuration is tried about every five minutes', () => {
  expect([waitForProbeMs(() => 0), waitForProbeMs(() => 1)]).toEqual([240_000, 360_000])
})
