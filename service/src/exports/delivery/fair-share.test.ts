import { expect, test } from 'vitest'

import { fairShare } from './fair-share.ts'

test.each([
  [0, 4, 32],
  [31, 4, 1],
  [32, 2, 16],
  [47, 2, 1],
  [48, 1, 16],
  [63, 1, 1],
  [64, 1, 0],
  [65, 1, 0],
])(
  'with %i of 64 places taken, an organization may have %i, and %i are given',
  (taken, perOrganization, places) => {
    expect(fairShare(taken, 64, 4)).toEqual({ perOrganization, places })
  },
)

test('16 organizations that want all they can get leave a quarter to others', () => {
  const held = Array.from({ length: 16 }, () => 0)
  const taken = () => held.reduce((sum, places) => sum + places, 0)
  for (let round = 0; round < 100; round++) {
    const share = fairShare(taken(), 64, 4)
    for (const at of held.keys()) {
      const wanted = Math.max(0, share.perOrganization - held[at]!)
      const given = Math.min(wanted, share.places)
      share.places -= given
      held[at]! += given
    }
  }
  expect(taken()).toBe(48)
  expect(Math.min(...held)).toBeGreaterThanOrEqual(1)
})
