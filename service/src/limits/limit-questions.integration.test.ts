import { expect, onTestFinished, test } from 'vitest'

import { systemClock } from '#platform/clock.ts'
import { createMetrics } from '#platform/metrics.ts'
import { connectPatiently, startRedis, until } from '#testing/redis-cluster.ts'

import { createRedisCounters } from './counters/redis-counters.ts'
import { createLimitsOf, type Limited } from './effective-limits.ts'
import { createQuestionLimit, questionLimit } from './limit-questions.ts'
import { createLimiter } from './limiter.ts'
import { defaultTable, type LimitTable, readLimitsFile } from './limits-file.ts'

const free: Limited = { plan: 'free', paidMicroUsd: 0, limitOverrides: null }
const acme = { ...free, organizationId: 'org_acme' }
const other = { ...free, organizationId: 'org_other' }

const tableOf = (numbers: object) =>
  readLimitsFile(JSON.stringify({ free: { organization: numbers } }))

const limitsBy = (table: LimitTable) => ({
  table: () => table,
  limitsOf: createLimitsOf(() => table),
})

test('by default the numbers are multiples of the requests per minute, and at least 120', () => {
  const models = ['scorer', 'judge', 'rewriter', 'guardrail'] as const
  const numbersOf = (caller: Limited, table = defaultTable) =>
    models.map((model) => questionLimit(model, caller, limitsBy(table)))
  expect(numbersOf(free)).toEqual([7200, 1200, 120, 7200])
  expect(numbersOf({ ...free, plan: 'growth' })).toEqual([36_000, 6000, 600, 36_000])
  const limitOverrides = { organization: { requests_per_minute: 1 } }
  expect(numbersOf({ ...free, limitOverrides })).toEqual([120, 120, 120, 120])
  const table = tableOf({
    scorer_questions_per_minute: 5,
    judge_questions_per_minute: 1,
    guardrail_questions_per_minute: 3,
  })
  expect(numbersOf(free, table)).toEqual([5, 1, 120, 3])
  expect(numbersOf({ ...free, plan: 'growth' }, table)).toEqual([36_000, 6000, 600, 36_000])
})

/** Two processes with one Redis. */
async function openProcesses(numbers: object) {
  const server = await startRedis()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const redis = connectPatiently(server.url)
  onTestFinished(() => redis.close())
  await until(async () => Boolean(await redis.send('', ['PING'])))
  const open = () =>
    createQuestionLimit({
      ...limitsBy(tableOf(numbers)),
      limiter: createLimiter({ counters: createRedisCounters({ redis, prefix: 'q' }) }),
      now: systemClock,
      steadyNow: systemClock,
      metrics: createMetrics(),
    })
  return [open(), open()] as const
}

const outcomeOf = (asked: Promise<void>) =>
  asked.then(
    () => 'asked',
    (error: Error) => error.message.replace(/\d+s\.$/, ''),
  )
const refused =
  'Rate limit reached for scorer questions per minute on organization: limit 10. Retry after '

test('all processes count together, by organization and by who is asked', async () => {
  const [one, two] = await openProcesses({ scorer_questions_per_minute: 10 })
  expect(await outcomeOf(one(acme).scorer.begin(6))).toBe('asked')
  expect(await outcomeOf(two(acme).scorer.begin(5))).toBe(refused)
  expect(await outcomeOf(two(acme).scorer.begin(4))).toBe('asked')
  expect(await outcomeOf(one(acme).scorer.begin(1))).toBe(refused)
  expect(await outcomeOf(one(acme).judge.begin(1))).toBe('asked')
  expect(await outcomeOf(one(other).scorer.begin(10))).toBe('asked')
})

test('what answers make others asked is only counted, and refuses the next request', async () => {
  const [one] = await openProcesses({ scorer_questions_per_minute: 10 })
  const { scorer } = one(acme)
  expect(await outcomeOf(scorer.check())).toBe('asked')
  for (let i = 0; i < 30; i++) scorer.add(1)
  await expect.poll(() => outcomeOf(one(acme).scorer.check())).toBe(refused)
  expect(await outcomeOf(one(other).scorer.check())).toBe('asked')
})

test('a request that needs more than a minute allows is admitted once', async () => {
  const [one] = await openProcesses({ scorer_questions_per_minute: 10 })
  expect(await outcomeOf(one(acme).scorer.begin(500))).toBe('asked')
  expect(await outcomeOf(one(acme).scorer.begin(1))).toBe(refused)
})
