import { expect, onTestFinished, test, vi } from 'vitest'

import { createRedisCounters, type RedisCounters } from '#limits/counters/redis-counters.ts'
import { createLimiter, type Slot } from '#limits/limiter.ts'
import { leaseMs, unlimited } from '#limits/limits.ts'
import { type QuotaCounter, type QuotaRules, toCallQuotas } from '#limits/quotas/quota.ts'
import { createMetrics } from '#platform/metrics.ts'
import { useRedis } from '#testing/redis-cluster.ts'
import { silentLog } from '#testing/silent-log.ts'

import { createCountersWithFallback } from './counters-with-fallback.ts'

// Three processes lose Redis and get it back, full or empty. The test has the books that the database would have.

const processes = 3
const quota = 30
const tokensOfCall = 10
const limits = { organization: unlimited, project: unlimited, key: unlimited }
const rules: QuotaRules = {
  quotas: [
    { scope: 'user', subject: 'ann', window: 'monthly', requests: quota, tokens: 0 },
    { scope: 'project', subject: 'p', window: 'monthly', requests: 0, tokens: 100_000 },
  ],
  budgets: [],
  areQuotasEnforced: true,
  policy: null,
}

const redis = useRedis()

function setUp(organizationId: string) {
  const line = { isCut: false }
  const books = { requests: 0, tokens: 0, credits: 0 }
  const send = async <T>(command: () => Promise<T>): Promise<T> =>
    line.isCut ? Promise.reject(new Error('cut')) : command()
  const real = createRedisCounters({ redis: redis(), prefix: 'q' })
  const overLine: RedisCounters = {
    ...real,
    load: () => send(real.load),
    admit: (call, each) => send(() => real.admit(call, each)),
    settle: (settlement) => send(() => real.settle(settlement)),
    renew: (leases, ms) => send(() => real.renew(leases, ms)),
    release: (leases) => send(() => real.release(leases)),
    absorb: (id, scopes) => send(() => real.absorb(id, scopes)),
    renewQuotas: (of, ms) => send(() => real.renewQuotas(of, ms)),
    forgetQuotas: (of) => send(() => real.forgetQuotas(of)),
  }
  let calls = 0
  const all = Array.from({ length: processes }, () => {
    const counters = createCountersWithFallback({
      redis: overLine,
      kind: 'inference',
      now: () => new Date(),
      log: silentLog,
      metrics: createMetrics(),
      processes: () => processes,
    })
    onTestFinished(counters.stop)
    const loadQuotas = async (_: string, wanted: readonly QuotaCounter[]) =>
      new Map(wanted.map((counter) => [counter, { ...books }]))
    const limiter = createLimiter({ counters, loadQuotas })
    /** The slot of an admitted call; null if the quota refuses it. */
    const begin = async (): Promise<Slot | null> => {
      const leaseId = `req-${calls++}`
      const asked = { rules, leaseId, tokens: tokensOfCall, credits: 0 }
      const quotas = toCallQuotas({ ...asked, nowMs: counters.now().getTime() })
      const ids = { organizationId, projectId: 'p', keyId: 'k' }
      const call = { ...ids, leaseId, tokens: tokensOfCall, leaseMs, quotas }
      return (await limiter(call, limits)).slot
    }
    /** The database is moved first, as it is for real calls. */
    const end = async (slot: Slot) => {
      books.requests++
      books.tokens += tokensOfCall / 2
      await slot.settle(tokensOfCall / 2)
    }
    /** Sends calls until one is refused, `most` at most. */
    const use = async (most: number): Promise<number> => {
      for (let sent = 0; sent < most; sent++) {
        const slot = await begin()
        if (!slot) return sent
        await end(slot)
      }
      return most
    }
    return { begin, end, use, isExact: counters.isExact }
  })
  const useAll = async (most: number) => {
    const used: number[] = []
    for (const each of all) used.push(await each.use(most))
    return used
  }
  const untilExact = () => vi.waitUntil(() => all.every(({ isExact }) => isExact()), 15_000)
  return { line, books, all, useAll, untilExact }
}

test('while Redis is away, the quota is exceeded by what was in flight at most, and not at all afterwards', async () => {
  const { line, books, all, useAll, untilExact } = setUp('bound')
  await useAll(2)
  const running = await Promise.all(all.map(({ begin }) => begin()))
  expect(books.requests).toBe(6)
  line.isCut = true
  // By what the database has, 24 are left: 8 for each.
  const first = await Promise.all(all.map(({ begin }) => begin()))
  for (const [index, slot] of first.entries()) await all[index]!.end(slot!)
  expect(await useAll(100)).toEqual([7, 7, 7])
  for (const [index, slot] of running.entries()) await all[index]!.end(slot!)
  expect(books.requests).toBe(quota + processes)
  line.isCut = false
  await untilExact()
  expect(await useAll(100)).toEqual([0, 0, 0])
}, 30_000)

test.for(['kept', 'lost'])(
  'calls from the outage count once when Redis is back and has %s everything',
  { timeout: 30_000 },
  async (what) => {
    const { line, books, all, useAll, untilExact } = setUp(`once-${what}`)
    await useAll(3)
    const fromBefore = await all[0]!.begin()
    line.isCut = true
    expect(await all[1]!.use(4)).toBe(4)
    const fromOutage = await all[1]!.begin()
    const endedInOutage = await all[2]!.begin()
    await all[2]!.end(endedInOutage!)
    if (what === 'lost') await redis().send('', ['FLUSHALL'])
    line.isCut = false
    await untilExact()
    // 9, 4 and 1 have ended, and 2 are running. The first process has not noticed the outage: what its call reserves is
    // unknown to a Redis that has lost it, until the next renewal.
    const unknown = what === 'lost' ? 1 : 0
    expect(books.requests).toBe(14)
    expect(await all[0]!.use(100)).toBe(quota - 16 + unknown)
    await all[0]!.end(fromBefore!)
    await all[1]!.end(fromOutage!)
    expect(books.requests).toBe(quota + unknown)
    expect(await useAll(100)).toEqual([0, 0, 0])
  },
)

test('what a running call reserves is counted again after Redis was emptied, with its renewal', async () => {
  const { books, all, line, untilExact } = setUp('emptied')
  const running = await Promise.all(Array.from({ length: 5 }, () => all[0]!.begin()))
  await redis().send('', ['FLUSHALL'])
  // An outage makes the process renew its leases at once.
  line.isCut = true
  await all[0]!.use(1)
  await vi.waitUntil(async () => {
    await all[0]!.use(1)
    return !all[0]!.isExact()
  }, 5000)
  line.isCut = false
  await untilExact()
  const ended = books.requests
  expect(await all[1]!.use(100)).toBe(quota - ended - running.length)
}, 30_000)
