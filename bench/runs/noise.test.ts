import { expect, test } from 'vitest'

import { isNoisy, spreadOf } from './noise.ts'

test('a run is noisy when others had a sixth of the machine, or the bare proxy was uneven', () => {
  expect(isNoisy({ othersShare: 0.15, bareSpread: 1.5 })).toBe(false)
  expect(isNoisy({ othersShare: 0.16, bareSpread: 1 })).toBe(true)
  expect(isNoisy({ othersShare: 0, bareSpread: 1.51 })).toBe(true)
})

test('the spread is that of the most uneven series; one window has none', () => {
  expect(spreadOf([])).toBe(1)
  expect(spreadOf([[200]])).toBe(1)
  expect(
    spreadOf([
      [100, 110, 120],
      [100, 160, 900],
    ]),
  ).toBe(1.6)
})
