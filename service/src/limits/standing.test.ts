import fc from 'fast-check'
import { expect, test } from 'vitest'

import { inferenceHeaders } from './inference-headers.ts'
import { type Amounts, type Limits, type Metric, scopes, type Verdict } from './limits.ts'
import { closest } from './standing.ts'
import { limitsByTier } from './tiers.ts'

const amounts: fc.Arbitrary<Amounts> = fc.record({
  requests_per_minute: fc.nat(200),
  requests_per_day: fc.nat(30_000),
  tokens_per_minute: fc.nat(3_000_000),
  tokens_per_day: fc.nat(2_000_000_000),
  concurrent_requests: fc.nat(8),
})
const verdict: fc.Arbitrary<Verdict> = fc.record({
  nowMs: fc.integer({ min: 1_700_000_000_000, max: 1_800_000_000_000 }),
  usage: fc.record({ organization: amounts, project: amounts, key: amounts }),
  refusal: fc.constant(null),
})

const left = (limits: Limits, { usage }: Verdict, metric: Metric) =>
  scopes.map((scope) => Math.max(0, limits[scope][metric] - usage[scope][metric]))

test('no scope has less left than the one that is reported', () => {
  fc.assert(
    fc.property(verdict, fc.constantFrom(...Object.values(limitsByTier)), (each, limits) => {
      for (const unit of ['requests', 'tokens'] as const) {
        const reported = closest(unit, each, limits)?.remaining
        const all = (['minute', 'day'] as const).flatMap((window) =>
          left(limits, each, `${unit}_per_${window}`),
        )
        expect(reported).toBe(Math.min(...all))
      }
    }),
  )
})

const used = (changes: Partial<Amounts> = {}): Amounts => ({
  ...{ requests_per_minute: 1, requests_per_day: 1, tokens_per_minute: 10, tokens_per_day: 10 },
  ...{ concurrent_requests: 1, ...changes },
})
const at = (usage: Partial<Verdict['usage']>): Verdict => ({
  nowMs: 1_700_000_000_250,
  usage: { organization: used(), project: used(), key: used(), ...usage },
  refusal: null,
})

test('a first call of the free tier: the key is closest, and recovers within the minute', () => {
  expect(inferenceHeaders(at({}), limitsByTier.free)).toEqual({
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '1m0.75s',
    'x-ratelimit-limit-tokens': '1000000',
    'x-ratelimit-remaining-tokens': '999990',
    'x-ratelimit-reset-tokens': '1m0.75s',
  })
})

test('the project-tokens headers come only when the project is what would block first', () => {
  const busy = at({ project: used({ tokens_per_minute: 1_400_000 }) })
  expect(inferenceHeaders(busy, limitsByTier.free)).toMatchObject({
    'x-ratelimit-limit-tokens': '1500000',
    'x-ratelimit-remaining-tokens': '100000',
    'x-ratelimit-limit-project-tokens': '1500000',
    'x-ratelimit-remaining-project-tokens': '100000',
    'x-ratelimit-reset-project-tokens': '1m0.75s',
  })
})

test('of two that are equally close the one that takes longer is reported', () => {
  const day = at({ key: used({ requests_per_minute: 1, requests_per_day: 10_000 - 59 }) })
  expect(inferenceHeaders(day, limitsByTier.free)).toMatchObject({
    'x-ratelimit-limit-requests': '10000',
    'x-ratelimit-remaining-requests': '59',
  })
})

test('a window in which nothing was counted is as new', () => {
  const none = used({ tokens_per_minute: 0, tokens_per_day: 0 })
  const headers = inferenceHeaders(
    at({ organization: none, project: none, key: none }),
    limitsByTier.free,
  )
  expect(headers['x-ratelimit-reset-tokens']).toBe('0s')
})
