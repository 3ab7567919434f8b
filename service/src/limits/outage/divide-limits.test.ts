import fc from 'fast-check'
import { expect, test } from 'vitest'

import { windowMetrics } from '#limits/limit-metrics.ts'
import { type Amounts, scopes } from '#limits/limits.ts'
import { limitsByTier } from '#limits/tiers.ts'

import { divideLimits } from './divide-limits.ts'

const none = { organization: 0, project: 0, key: 0 }
const nowMs = 1_700_000_000_000

const usedUp = (amounts: Amounts, share: number): Amounts =>
  Object.fromEntries(
    Object.entries(amounts).map(([metric, limit]) => [metric, Math.floor(limit * share)]),
  ) as Amounts

test('together the processes admit at most one call per process more than was left', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.double({ min: 0, max: 1.2, noNaN: true }),
      fc.constantFrom(...Object.values(limitsByTier)),
      (processes, part, limits) => {
        const lastKnown = Object.fromEntries(
          scopes.map((scope) => [scope, { atMs: nowMs, amounts: usedUp(limits[scope], part) }]),
        )
        const share = divideLimits(limits, { processes, lastKnown, slotsFromRedis: none, nowMs })
        for (const scope of scopes) {
          for (const { metric } of windowMetrics) {
            if (limits[scope][metric] === Infinity) continue
            const left = Math.max(0, limits[scope][metric] - lastKnown[scope]!.amounts[metric])
            expect(share[scope][metric] * processes).toBeGreaterThanOrEqual(left)
            expect(share[scope][metric] * processes).toBeLessThan(left + processes)
          }
        }
      },
    ),
  )
})

test('known usage counts until its window has passed, then the whole limit is divided', () => {
  const limits = limitsByTier.free
  const lastKnown = { key: { atMs: nowMs, amounts: usedUp(limits.key, 1) } }
  const shareAt = (ms: number) =>
    divideLimits(limits, { processes: 2, lastKnown, slotsFromRedis: none, nowMs: nowMs + ms }).key
  expect(shareAt(60_999).requests_per_minute).toBe(0)
  expect(shareAt(61_000).requests_per_minute).toBe(30)
  expect(shareAt(61_000).requests_per_day).toBe(0)
  expect(shareAt(25 * 3_600_000).requests_per_day).toBe(5000)
})

test('slots from Redis count against the share, and a process without any may take one', () => {
  const limits = limitsByTier.free
  const share = (held: number, processes: number) =>
    divideLimits(limits, {
      processes,
      lastKnown: {},
      slotsFromRedis: { ...none, key: held },
      nowMs,
    }).key.concurrent_requests
  expect([share(0, 2), share(1, 2), share(2, 2), share(3, 2)]).toEqual([2, 1, 0, 0])
  expect(share(0, 100)).toBe(1)
})

test('a metric without a limit stays without one', () => {
  const share = divideLimits(limitsByTier.free, {
    processes: 3,
    lastKnown: {},
    slotsFromRedis: none,
    nowMs,
  })
  expect(share.key.tokens_per_day).toBe(Infinity)
})
