import fc from 'fast-check'
import { expect, test } from 'vitest'

import { type Amounts, scopes } from './limits.ts'
import { shareOf } from './share.ts'
import { limitsByTier } from './tiers.ts'

const none = { organization: 0, project: 0, key: 0 }
const nowMs = 1_700_000_000_000
const windowMetrics = ['requests_per_minute', 'requests_per_day', 'tokens_per_minute'] as const

const usedUp = (amounts: Amounts, share: number): Amounts =>
  Object.fromEntries(
    Object.entries(amounts).map(([metric, limit]) => [metric, Math.floor(limit * share)]),
  ) as Amounts

test('together the processes let at most one more per process through than was left', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.double({ min: 0, max: 1.2, noNaN: true }),
      fc.constantFrom(...Object.values(limitsByTier)),
      (processes, part, limits) => {
        const known = Object.fromEntries(
          scopes.map((scope) => [scope, { atMs: nowMs, amounts: usedUp(limits[scope], part) }]),
        )
        const share = shareOf(limits, { processes, known, slots: none, nowMs })
        for (const scope of scopes) {
          for (const metric of windowMetrics) {
            const left = Math.max(0, limits[scope][metric] - known[scope]!.amounts[metric])
            expect(share[scope][metric] * processes).toBeGreaterThanOrEqual(left)
            expect(share[scope][metric] * processes).toBeLessThan(left + processes)
          }
        }
      },
    ),
  )
})

test('what was used before counts until it has left its window, then the share is of the whole', () => {
  const limits = limitsByTier.free
  const known = { key: { atMs: nowMs, amounts: usedUp(limits.key, 1) } }
  const shareAt = (ms: number) =>
    shareOf(limits, { processes: 2, known, slots: none, nowMs: nowMs + ms }).key
  expect(shareAt(60_999).requests_per_minute).toBe(0)
  expect(shareAt(61_000).requests_per_minute).toBe(30)
  expect(shareAt(61_000).requests_per_day).toBe(0)
  expect(shareAt(25 * 3_600_000).requests_per_day).toBe(5000)
})

test('slots that are held count against the share, and somebody without any gets one', () => {
  const limits = limitsByTier.free
  const share = (held: number, processes: number) =>
    shareOf(limits, { processes, known: {}, slots: { ...none, key: held }, nowMs }).key
      .concurrent_requests
  expect([share(0, 2), share(1, 2), share(2, 2), share(3, 2)]).toEqual([2, 1, 0, 0])
  expect(share(0, 100)).toBe(1)
})

test('what is unlimited stays so', () => {
  const share = shareOf(limitsByTier.free, { processes: 3, known: {}, slots: none, nowMs })
  expect(share.key.tokens_per_day).toBe(Infinity)
})
