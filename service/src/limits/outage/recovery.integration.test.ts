import { expect, test } from 'vitest'

import { createRedisCounters, type RedisCounters } from '#limits/counters/redis-counters.ts'
import { type Lease, type Limits, unlimited } from '#limits/limits.ts'
import { createMetrics } from '#platform/metrics.ts'
import { until, useRedis } from '#testing/redis-cluster.ts'
import { silentLog } from '#testing/silent-log.ts'

import { createCountersWithFallback } from './counters-with-fallback.ts'

// Calls at the worst moments of a recovery. Redis is real; the line to it is cut and watched.

const limits: Limits = { organization: unlimited, project: unlimited, key: unlimited }

const redis = useRedis()

type Command = 'absorb' | 'release'

/** Counters over a line that can be cut; `before` runs before a command of the recovery is sent. */
function setUp(organizationId: string, before: (command: Command) => Promise<void>) {
  const real = createRedisCounters({ redis: redis(), prefix: 'r' })
  const line = { isCut: false }
  const send = async <T>(command: () => Promise<T>): Promise<T> =>
    line.isCut ? Promise.reject(new Error('cut')) : command()
  const overLine: RedisCounters = {
    ...real,
    load: () => send(real.load),
    admit: (attempt, each) => send(() => real.admit(attempt, each)),
    settle: (settlement) => send(() => real.settle(settlement)),
    async absorb(id, scopes) {
      await before('absorb')
      return real.absorb(id, scopes)
    },
    async release(leases) {
      if (leases.length > 0) await before('release')
      return real.release(leases)
    },
  }
  const counters = createCountersWithFallback({
    redis: overLine,
    kind: 'inference',
    now: () => new Date(),
    log: silentLog,
    metrics: createMetrics(),
    processes: () => 1,
  })
  let calls = 0
  const admit = async (id = organizationId): Promise<Lease> => {
    const lease = { organizationId: id, projectId: 'p', keyId: 'k', leaseId: `req-${calls++}` }
    const { refusal } = await counters.admit({ ...lease, leaseMs: 60_000, tokens: 10 }, limits)
    expect(refusal).toBeNull()
    return lease
  }
  const end = (lease: Lease) =>
    counters.settle({ ...lease, reserved: 10, used: 10, admittedAtMs: Date.now() })
  const usage = async (id = organizationId) => (await real.read(id)).organization
  return { line, counters, admit, end, usage, calls: () => calls }
}

test('a call that is admitted while the last leases are released is counted too', async () => {
  const running: Lease[] = []
  let admitted = 0
  const bench = setUp('late', async (command) => {
    const [lease] = running.splice(0, 1)
    if (command === 'absorb' && lease) await bench.end(lease)
    if (command === 'release' && admitted++ < 10) await bench.admit()
  })
  bench.line.isCut = true
  for (let call = 0; call < 10; call++) running.push(await bench.admit())
  bench.line.isCut = false
  await until(async () => bench.counters.isExact())
  expect(admitted).toBeGreaterThan(0)
  await until(async () => (await bench.usage()).requests_per_day === bench.calls())
  bench.counters.stop()
})

test('a release that fails for one organization is repeated, and the others are released as well', async () => {
  let failures = 0
  const bench = setUp('one', async (command) => {
    if (command === 'release' && failures++ === 0) throw new Error('cut')
  })
  const organizations = ['one', 'two', 'three']
  const leases: Lease[] = []
  for (const id of organizations) leases.push(await bench.admit(id))
  bench.line.isCut = true
  for (let call = 0; call < 5; call++) await bench.admit()
  for (const lease of leases) await bench.end(lease)
  bench.line.isCut = false
  await until(async () => bench.counters.isExact())
  expect(failures).toBeGreaterThan(1)
  expect((await bench.usage('two')).concurrent_requests).toBe(0)
  expect((await bench.usage('three')).concurrent_requests).toBe(0)
  bench.counters.stop()
})
