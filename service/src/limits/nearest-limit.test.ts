import fc from 'fast-check'
import { expect, test } from 'vitest'

import { inferenceHeaders } from './inference-headers.ts'
import { limitMetrics, type Metric, windowMetrics } from './limit-metrics.ts'
import { type Amounts, type Limits, scopes, type Verdict } from './limits.ts'
import { findNearestLimit } from './nearest-limit.ts'
import { limitsByTier } from './tiers.ts'

/** Up to one and a half times what an organization of the free tier may use. */
const amounts = fc.record(
  Object.fromEntries(
    limitMetrics.map(({ metric }) => [
      metric,
      fc.nat(Math.ceil(limitsByTier.free.organization[metric] * 1.5)),
    ]),
  ),
) as fc.Arbitrary<Amounts>
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
        const reported = findNearestLimit(unit, each, limits)?.remaining
        const all = windowMetrics
          .filter((row) => row.unit === unit)
          .flatMap(({ metric }) => left(limits, each, metric))
        expect(reported).toBe(Math.min(...all))
      }
    }),
  )
})

/** One call of ten tokens. */
const oneCall = Object.fromEntries(
  limitMetrics.map(({ metric, unit }) => [metric, unit === 'tokens' ? 10 : 1]),
) as Amounts
const used = (changes: Partial<Amounts> = {}): Amounts => ({ ...oneCall, ...changes })
const at = (usage: Partial<Verdict['usage']>): Verdict => ({
  nowMs: 1_700_000_000_250,
  usage: { organization: used(), project: used(), key: used(), ...usage },
  refusal: null,
})

test('after a first call of the free tier the limits of the key are nearest, and reset within a minute', () => {
  expect(inferenceHeaders(at({}), limitsByTier.free)).toEqual({
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '1m0.75s',
    'x-ratelimit-limit-tokens': '1000000',
    'x-ratelimit-remaining-tokens': '999990',
    'x-ratelimit-reset-tokens': '1m0.75s',
  })
})

test('the project-tokens headers are sent only if the token limit of the project is nearest', () => {
  const busy = at({ project: used({ tokens_per_minute: 1_400_000 }) })
  expect(inferenceHeaders(busy, limitsByTier.free)).toMatchObject({
    'x-ratelimit-limit-tokens': '1500000',
    'x-ratelimit-remaining-tokens': '100000',
    'x-ratelimit-limit-project-tokens': '1500000',
    'x-ratelimit-remaining-project-tokens': '100000',
    'x-ratelimit-reset-project-tokens': '1m0.75s',
  })
})

test('of two equally near limits the one with the longer reset is reported', () => {
  const day = at({ key: used({ requests_per_minute: 1, requests_per_day: 10_000 - 59 }) })
  expect(inferenceHeaders(day, limitsByTier.free)).toMatchObject({
    'x-ratelimit-limit-requests': '10000',
    'x-ratelimit-remaining-requests': '59',
  })
})

test('a limit of which nothing is used has a reset of 0s', () => {
  const none = used({ tokens_per_minute: 0, tokens_per_day: 0 })
  const headers = inferenceHeaders(
    at({ organization: none, project: none, key: none }),
    limitsByTier.free,
  )
  expect(headers['x-ratelimit-reset-tokens']).toBe('0s')
})
