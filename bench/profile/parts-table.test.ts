import { expect, test } from 'vitest'

import { partsTableOf, sharesOf } from './parts-table.ts'
import type { Profile } from './report.ts'

const frame = (functionName: string, url: string) => ({ functionName, url, lineNumber: 0 })
const service = 'file:///somewhere/service/src'

/** A request of 100 µs: 10 in the limiter, 20 in Node's code that the limiter called, 30 idle, 40 of garbage. */
const profile: Profile = {
  nodes: [
    { id: 1, callFrame: frame('(root)', ''), children: [2, 4, 5] },
    { id: 2, callFrame: frame('admit', `${service}/limits/limiter.ts`), children: [3] },
    { id: 3, callFrame: frame('write', 'node:net') },
    { id: 4, callFrame: frame('(idle)', '') },
    { id: 5, callFrame: frame('(garbage collector)', '') },
  ],
  samples: [2, 3, 4, 5],
  timeDeltas: [10, 20, 30, 40],
}

test("Node's own code counts for the part that called it; idle time counts for none", () => {
  const shares = sharesOf(profile)
  expect(shares.limiter).toBeCloseTo(30 / 70)
  expect(shares.other).toBeCloseTo(40 / 70)
  expect(Object.values(shares).reduce((sum, share) => sum + share, 0)).toBeCloseTo(1)
})

test('the table has times of the main thread by share, and adds other threads to the last part', () => {
  const table = partsTableOf('plain', profile, { bare: 100, service: 170, mainThread: 70 })
  expect(table).toMatch(/^limiter +30 +30 +35 +holds$/m)
  expect(table).toMatch(/^not attributable.* 140 +140 +60 +MISSES$/m)
  expect(table).toMatch(/^all +170 +170 +360 +holds$/m)
})
