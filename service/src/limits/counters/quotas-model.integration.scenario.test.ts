import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { isAdmitted, unlimited, type Verdict } from '#limits/limits.ts'
import { calendarWindows, periodAt } from '#limits/quotas/calendar.ts'
import { renewQuotas } from '#limits/quotas/quota-counts.ts'
import {
  type CallQuotas,
  type QuotaAmounts,
  type QuotaCounter,
  type QuotaRules,
  toCallQuotas,
} from '#limits/quotas/quota.ts'
import type { Redis } from '#platform/redis.ts'
import { connectPatiently, until } from '#testing/redis-cluster.ts'
import { redisUrl } from '#testing/servers.ts'

import { organizationKeys, quotaKeys } from './counter-names.ts'
import { createOrganizationCounts, type OrganizationCounts } from './organization-counts.ts'
import { createRedisCounters } from './redis-counters.ts'
import { admit, settle } from './rolling-window.ts'

// Random sequences in virtual time, through quotas.lua and through the model in TypeScript: every verdict must be the
// same. Beside them the test keeps its own books of every call, by the calendar alone, and compares those with the
// quotas. QUOTA_SEED repeats a run.

const sequences = sizeOf({ usual: 1000, long: 20_000, variable: 'QUOTA_SEQUENCES' })
const seed = Number(process.env['QUOTA_SEED'] ?? Date.now() % 2 ** 31)
const leaseMs = 60_000
const dayMs = 86_400_000
const limits = { organization: unlimited, project: unlimited, key: unlimited }

const rules: fc.Arbitrary<QuotaRules> = fc
  .record({
    window: fc.constantFrom(...calendarWindows),
    projectWindow: fc.constantFrom(...calendarWindows),
    requests: fc.integer({ min: 0, max: 6 }),
    tokens: fc.integer({ min: 0, max: 800 }),
    credits: fc.integer({ min: 1, max: 3000 }),
    hasHardStop: fc.boolean(),
  })
  .map(({ window, projectWindow, requests, tokens, credits, hasHardStop }) => ({
    quotas: [
      { scope: 'user', subject: 'ann', window, requests, tokens },
      { scope: 'project', subject: 'p', window: projectWindow, requests: 8, tokens: tokens * 2 },
    ],
    areQuotasEnforced: true,
    policy: null,
    budgets: [
      { scope: 'organization', subject: '', credits, alertPercents: [50], hasHardStop },
      { scope: 'project', subject: 'p', credits: 2000, alertPercents: [], hasHardStop: true },
    ],
  }))

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('admit' as const),
      user: fc.constantFrom('ann', 'bob|x', 'Çelik, 東'),
      tokens: fc.integer({ min: 0, max: 300 }),
      credits: fc.integer({ min: 0, max: 700 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      which: fc.nat(100),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('renew' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('empty' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.oneof(
        fc.integer({ min: 0, max: 20_000 }),
        fc.integer({ min: 50_000, max: 70_000 }),
        fc.integer({ min: dayMs / 4, max: 9 * dayMs }),
      ),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

type Call = { leaseId: string; quotas: CallQuotas; endsAtMs: number; atMs: number }
const unsettled = (books: Books) => books.calls.filter(({ used }) => used === null)
type Entry = Call & { used: { tokens: number; credits: number } | null; isLost: boolean }

/** What the test knows: every admitted call. Calls that have ended are in the database. */
type Books = { calls: Entry[]; rules: QuotaRules; periods: Set<string> }

const nameOf = ({ scope, subject, period }: QuotaCounter) => `${scope} ${subject} ${period.name}`

/** What the database has for a counter: the sums of calls that have ended, or whose lease has. */
function databaseAmounts({ calls }: Books, counter: QuotaCounter): QuotaAmounts {
  const ended = calls.filter(
    ({ quotas, used, isLost }) =>
      (used !== null || isLost) && quotas.counters.some((each) => nameOf(each) === nameOf(counter)),
  )
  return {
    requests: ended.length,
    tokens: ended.reduce((sum, { used }) => sum + (used?.tokens ?? 0), 0),
    credits: ended.reduce((sum, { used }) => sum + (used?.credits ?? 0), 0),
  }
}

function createBench(redis: Redis) {
  const prefix = `quotas-${seed}`
  const bench = { nowMs: 0, runs: 0, redis, prefix }
  const counters = createRedisCounters({ redis, prefix, nowMs: () => bench.nowMs })
  const outcomes = { admitted: 0, loaded: 0, requests: 0, tokens: 0, credits: 0, expired: 0 }
  return Object.assign(bench, { counters, outcomes })
}
type Bench = ReturnType<typeof createBench>
type Sequence = { bench: Bench; model: OrganizationCounts; books: Books; hasBeenEmptied: boolean }

const organizationOf = ({ runs }: Bench) => `org-${runs}`

async function takeAdmit(each: Extract<Step, { kind: 'admit' }>, sequence: Sequence) {
  const { bench, model, books } = sequence
  const { tokens, credits, user } = each
  const leaseId = `req-${books.calls.length}`
  const quotas = books.rules.quotas.map((quota) =>
    quota.scope === 'user' ? { ...quota, subject: user } : quota,
  )
  const asked = { rules: { ...books.rules, quotas }, leaseId, tokens, credits, nowMs: bench.nowMs }
  let reserved = toCallQuotas(asked)!
  for (const { period } of reserved.counters) books.periods.add(period.name)
  const ids = { organizationId: organizationOf(bench), projectId: 'p', keyId: 'k', leaseId }
  let verdict: Verdict
  for (let tries = 0; ; tries++) {
    const call = { ...ids, tokens, leaseMs, quotas: reserved }
    verdict = admit(model, call, limits, bench.nowMs)
    expect(await bench.counters.admit(call, limits)).toEqual(verdict)
    const missing = verdict.quotas!.missing
    if (missing.length === 0) break
    expect(tries).toBe(0)
    bench.outcomes.loaded++
    const amounts = new Map(
      missing.map((counter) => [counter, databaseAmounts(books, counter)] as const),
    )
    reserved = { ...reserved, known: { askedAtMs: bench.nowMs, amounts } }
  }
  if (!isAdmitted(verdict)) {
    bench.outcomes[verdict.quotas!.refusal!.unit]++
    if (!sequence.hasBeenEmptied) expectFull(sequence, { tokens, credits }, verdict)
    return
  }
  bench.outcomes.admitted++
  const endsAtMs = bench.nowMs + leaseMs
  books.calls.push({
    leaseId,
    quotas: reserved,
    endsAtMs,
    atMs: bench.nowMs,
    used: null,
    isLost: false,
  })
}

/** A refused call would have exceeded its quota, by the books. */
function expectFull(
  { books, bench }: Sequence,
  wanted: { tokens: number; credits: number },
  { quotas }: Verdict,
) {
  const { counter, unit } = quotas!.refusal!
  const use = useOf(books, counter, bench.nowMs)
  const cost = { requests: 1, ...wanted }
  expect(use[unit] + cost[unit]).toBeGreaterThan(counter.limits[unit])
}

/** What calls of a period have used and reserve, found by their time and the calendar. */
function useOf({ calls }: Books, { scope, subject, period, window }: QuotaCounter, nowMs: number) {
  const counted = calls.filter(
    ({ atMs, quotas }) =>
      periodAt(window, atMs).name === period.name &&
      quotas.counters.some((each) => each.scope === scope && each.subject === subject),
  )
  const amountOf = ({ used, endsAtMs, quotas }: Entry) =>
    used ?? (endsAtMs >= nowMs ? quotas : { tokens: 0, credits: 0 })
  return {
    requests: counted.length,
    tokens: counted.reduce((sum, call) => sum + amountOf(call).tokens, 0),
    credits: counted.reduce((sum, call) => sum + amountOf(call).credits, 0),
  }
}

async function takeSettle(each: Extract<Step, { kind: 'settle' }>, sequence: Sequence) {
  const { bench, model, books } = sequence
  const open = unsettled(books).filter(({ isLost }) => !isLost)
  const call = open[each.which % Math.max(1, open.length)]
  if (!call) return
  const used = Math.floor(call.quotas.tokens * each.share)
  const usedCredits = Math.floor(call.quotas.credits * each.share)
  const settlement = {
    organizationId: organizationOf(bench),
    projectId: 'p',
    keyId: 'k',
    leaseId: call.leaseId,
    quotas: call.quotas,
    reserved: call.quotas.tokens,
    used,
    usedCredits,
    admittedAtMs: call.atMs,
  }
  const expected = settle(model, settlement, bench.nowMs)
  expect(await bench.counters.settle(settlement)).toEqual(expected)
  call.used = { tokens: used, credits: usedCredits }
}

async function takeRenew({ bench, model, books }: Sequence) {
  const organizationId = organizationOf(bench)
  for (const call of unsettled(books).filter(({ endsAtMs }) => endsAtMs >= bench.nowMs)) {
    call.endsAtMs = bench.nowMs + leaseMs
    renewQuotas(model.quotas, call.quotas, call.endsAtMs)
    for (const { name, period } of call.quotas.reservations) {
      await bench.counters.renewQuotas({ organizationId, period, names: [name] }, leaseMs)
    }
  }
}

/** Redis loses everything. Calls that run now are known again after their next renewal. */
async function takeEmpty(sequence: Sequence) {
  sequence.hasBeenEmptied ||= unsettled(sequence.books).length > 0
  await removeKeys(sequence)
  Object.assign(sequence.model, createOrganizationCounts())
}

async function removeKeys({ bench, books }: Sequence) {
  const id = organizationOf(bench)
  const keys = [...books.periods].flatMap((period) => quotaKeys(bench.prefix, id, period))
  await bench.redis.send('', ['DEL', ...organizationKeys(bench.prefix, id), ...keys])
}

async function take(each: Step, sequence: Sequence) {
  const { bench, books } = sequence
  if (each.kind === 'admit') await takeAdmit(each, sequence)
  else if (each.kind === 'settle') await takeSettle(each, sequence)
  else if (each.kind === 'renew') await takeRenew(sequence)
  else if (each.kind === 'empty') await takeEmpty(sequence)
  else bench.nowMs += each.ms
  for (const call of unsettled(books)) {
    // The sweep of holds: a call whose lease has expired ends with nothing used.
    if (call.endsAtMs >= bench.nowMs || call.isLost) continue
    call.isLost = true
    bench.outcomes.expired++
  }
}

function expectNothingExceeded({ books, bench }: Sequence) {
  for (const counter of books.calls.flatMap(({ quotas }) => quotas.counters)) {
    const use = useOf(books, counter, bench.nowMs)
    expect(use.requests).toBeLessThanOrEqual(counter.limits.requests)
    expect(use.tokens).toBeLessThanOrEqual(counter.limits.tokens)
    expect(use.credits).toBeLessThanOrEqual(counter.limits.credits)
  }
}

test(`${sequences} random sequences: Redis and the model never differ, and no quota is exceeded`, async () => {
  const redis = connectPatiently(redisUrl)
  await until(async () => Boolean(await redis.send('', ['PING'])))
  const bench = createBench(redis)
  await bench.counters.load()
  const property = fc.asyncProperty(
    rules,
    fc.array(step, { minLength: 5, maxLength: 40 }),
    async (found, steps) => {
      bench.runs++
      // Not far from the ends of months, years and a leap day.
      bench.nowMs = Date.UTC(2027, bench.runs % 15, 1) - (bench.runs % 5) * 20_000
      const model = createOrganizationCounts()
      const books = { calls: [], rules: found, periods: new Set<string>() }
      const sequence = { bench, model, books, hasBeenEmptied: false }
      for (const each of steps) {
        await take(each, sequence)
        if (!sequence.hasBeenEmptied) expectNothingExceeded(sequence)
      }
      await removeKeys(sequence)
    },
  )
  await fc.assert(property, { numRuns: sequences, seed })
  redis.close()
  console.log(`seed ${seed}, ${bench.runs} sequences`, bench.outcomes)
  for (const count of Object.values(bench.outcomes)) expect(count).toBeGreaterThan(sequences / 20)
}, 600_000)
