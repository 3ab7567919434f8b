import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import { expect, test } from 'vitest'

import { createRandom } from '#testing/fault-proxy.ts'

import {
  type DecisionCounts,
  findSpike,
  isOfMany,
  rollbackSettingsOf,
  windowStart,
} from './spike.ts'

const settingsOf = (rollout: object = {}) =>
  rollbackSettingsOf(GivenGatewayConfig.parse({ rollout }).rollout)

test('the share of refused and escalated requests must reach a quarter, of at least twenty', () => {
  const isSpike = (counts: DecisionCounts) => findSpike(settingsOf(), counts) !== null
  expect(isSpike({})).toBe(false)
  expect(isSpike({ allow: 15, refuse: 4 })).toBe(false)
  expect(isSpike({ allow: 15, refuse: 5 })).toBe(true)
  expect(isSpike({ allow: 16, refuse: 5 })).toBe(false)
  expect(isSpike({ allow: 15, refuse: 2, escalate: 3 })).toBe(true)
  expect(isSpike({ allow: 5, rewrite: 10, summary: 10 })).toBe(false)
  expect(findSpike(settingsOf(), { allow: 30, escalate: 10 })).toEqual({
    requests: 40,
    hits: 10,
    share: 0.25,
  })
})

test('the configuration says which decisions count, and what is too much', () => {
  const settings = settingsOf({
    rollback_threshold: 0.001,
    rollback_min_requests: 1,
    rollback_decisions: ['rewrite', 'rewrite'],
  })
  expect(findSpike(settings, { allow: 1000, refuse: 500 })).toBeNull()
  expect(findSpike(settings, { allow: 999, rewrite: 1 })).toMatchObject({ hits: 1 })
})

test.each([
  ['nobody', { all: 0, enforced: 0, refused: 0 }, false],
  ['the only one', { all: 1, enforced: 1, refused: 1 }, true],
  ['the only one of whom something is enforced', { all: 2, enforced: 1, refused: 1 }, false],
  ['one of two', { all: 2, enforced: 2, refused: 1 }, false],
  ['both', { all: 2, enforced: 2, refused: 2 }, true],
  ['both, and many in the shadow', { all: 90, enforced: 2, refused: 2 }, true],
  ['half', { all: 100, enforced: 100, refused: 50 }, false],
  ['more than half', { all: 100, enforced: 100, refused: 51 }, true],
])('a spike of %s is one of many: %j, %s', (_, callers, isSpike) => {
  expect(isOfMany(callers)).toBe(isSpike)
})

test('a window has whole minutes, and nothing from before the end of the last rollback', () => {
  const now = new Date('2026-05-04T10:20:30Z')
  const start = (until: string | null) =>
    windowStart(15, until === null ? null : new Date(until), now).toISOString()
  expect(start(null)).toBe('2026-05-04T10:05:00.000Z')
  expect(start('2026-05-04T09:00:00Z')).toBe('2026-05-04T10:05:00.000Z')
  expect(start('2026-05-04T10:12:59Z')).toBe('2026-05-04T10:12:00.000Z')
})

type Minute = { requests: number; refused: number }

const drawMinute = (random: () => number, requests: number, share: number): Minute => ({
  requests,
  refused: Array.from({ length: requests }, random).filter((drawn) => drawn < share).length,
})

/** Whether the last minute's end is a spike, by the counts of the window that ends there. */
function firesAt(minutes: readonly Minute[]) {
  const settings = settingsOf()
  const window = minutes.slice(-settings.windowMinutes - 1)
  const requests = window.reduce((sum, minute) => sum + minute.requests, 0)
  const refuse = window.reduce((sum, minute) => sum + minute.refused, 0)
  return findSpike(settings, { allow: requests - refuse, refuse }) !== null
}

const seed = Date.now() % 2 ** 31
const perMinute = [5, 20, 200]

test.each(perMinute)('a spike to a half is noticed within a window, %i a minute', (requests) => {
  const random = createRandom(seed)
  for (let run = 0; run < 100; run++) {
    const minutes = Array.from({ length: 16 }, () => drawMinute(random, requests, 0.01))
    let isNoticed = false
    for (let minute = 0; minute < 15 && !isNoticed; minute++) {
      minutes.push(drawMinute(random, requests, 0.5))
      isNoticed = firesAt(minutes)
    }
    expect(isNoticed, `seed ${seed}`).toBe(true)
  }
})

// 20 requests are the smallest sample that counts, and the one that chance fools most easily.
test.each([1, 2, ...perMinute])('a steady hundredth is not, %i a minute', (requests) => {
  const random = createRandom(seed)
  let fired = 0
  for (let run = 0; run < 1000; run++) {
    const minutes: Minute[] = []
    let isNoticed = false
    for (let minute = 0; minute < 32; minute++) {
      minutes.push(drawMinute(random, requests, 0.01))
      isNoticed ||= firesAt(minutes)
    }
    if (isNoticed) fired++
  }
  expect(fired, `seed ${seed}`).toBeLessThanOrEqual(1)
})
