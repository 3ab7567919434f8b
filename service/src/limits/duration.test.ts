import { expect, test } from 'vitest'

import { formatDuration } from './duration.ts'

test.each([
  [0, '0s'],
  [-5, '0s'],
  [0.2, '1ms'],
  [12, '12ms'],
  [999, '999ms'],
  [1000, '1s'],
  [1500, '1.5s'],
  [59_000, '59s'],
  [59_999, '59.999s'],
  [60_000, '1m0s'],
  [60_250, '1m0.25s'],
  [360_000, '6m0s'],
  [3_599_999, '59m59.999s'],
  [3_600_000, '1h0m0s'],
  [83_520_000, '23h12m0s'],
  [90_000_000, '25h0m0s'],
])('%d ms is %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})
