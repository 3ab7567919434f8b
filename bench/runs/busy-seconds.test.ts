import { expect, test } from 'vitest'

import { busySecondsIn } from './busy-seconds.ts'

test('idle cores and cores that wait for a disk are not busy; a hypervisor that takes a core away is', () => {
  const stat = 'cpu  100 20 30 99999 88888 4 6 40 0 0\ncpu0 50 10 15 5000 5000 2 3 20 0 0\nintr 1\n'
  expect(busySecondsIn(stat)).toBeCloseTo(2)
})
