import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { Redis } from '#platform/redis.ts'
import { connectPatiently, startRedisCluster, until } from '#testing/redis-cluster.ts'
import { redisUrl } from '#testing/servers.ts'

import { type Attempt, type Limits, type Refusal, scopes } from './limits.ts'
import { createRedisCounters, type RedisCounters } from './redis-counters.ts'
import {
  absorb,
  admit,
  createWindows,
  type HandOver,
  overview,
  renew,
  settle,
  type Windows,
} from './rolling-window.ts'

// The Redis function and the TypeScript model, step by step on random sequences in virtual time: every
// verdict, wait and count must be the same; on one server, in a cluster, and where functions are unknown.
// LIMIT_SEQUENCES sets how many, LIMIT_SEED repeats a run.

const sequences = Number(process.env['LIMIT_SEQUENCES'] ?? 10_000)
const sequencesElsewhere = Math.min(sequences, 500)
const seed = Number(process.env['LIMIT_SEED'] ?? Date.now() % 2 ** 31)

/** One is the beginning of the other: what is matched by a prefix shows. */
const places = [
  { projectId: 'a', keyId: '1' },
  { projectId: 'a', keyId: '12' },
  { projectId: 'ab', keyId: '2' },
  { projectId: 'ab', keyId: '123' },
] as const

const limits: fc.Arbitrary<Limits> = fc
  .record({
    requests: fc.integer({ min: 1, max: 12 }),
    day: fc.integer({ min: 5, max: 40 }),
    tokens: fc.integer({ min: 50, max: 2000 }),
    slots: fc.integer({ min: 1, max: 6 }),
    isUnlimited: fc.boolean(),
  })
  .map(({ requests, day, tokens, slots, isUnlimited }) => {
    const times = (factor: number) => ({
      requests_per_minute: Math.floor(requests * factor),
      requests_per_day: isUnlimited ? Infinity : Math.floor(day * factor),
      tokens_per_minute: Math.floor(tokens * factor),
      tokens_per_day: factor === 2 ? tokens * 8 : Infinity,
      concurrent_requests: isUnlimited ? Infinity : Math.ceil(slots * factor),
    })
    return { organization: times(2), project: times(1.5), key: times(1) }
  })

const place = fc.constantFrom(...places)
const lease = fc.nat(30)
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('admit' as const),
      place,
      lease,
      tokens: fc.integer({ min: 0, max: 400 }),
      leaseMs: fc.constantFrom(0, 1000, 30_000, 60_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      lease,
      used: fc.integer({ min: 0, max: 600 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('renew' as const),
      leases: fc.array(lease, { maxLength: 5 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.oneof(
        fc.integer({ min: 0, max: 900 }),
        fc.integer({ min: 1000, max: 61_000 }),
        fc.integer({ min: 3_000_000, max: 30_000_000 }),
        fc.integer({ min: -2000, max: -1 }), // a clock that steps back
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('absorb' as const),
      place,
      agoMs: fc.integer({ min: 0, max: 120_000 }),
      counted: fc.array(fc.tuple(fc.nat(70), fc.nat(5), fc.nat(300)), { maxLength: 4 }),
      known: fc.option(fc.tuple(fc.nat(20), fc.nat(1000))),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
type Admitted = { place: (typeof places)[number]; tokens: number; atMs: number }

function handOver(
  { place, agoMs, counted, known }: Extract<Step, { kind: 'absorb' }>,
  nowMs: number,
): HandOver[] {
  const byAge = [...new Map(counted.map((each) => [each[0], each])).values()].toSorted(
    ([left], [right]) => right - left,
  )
  const minute = byAge.map(([age, requests, tokens]) => ({
    id: Math.floor(nowMs / 1000) - age,
    requests,
    tokens,
  }))
  const total = (unit: 'requests' | 'tokens') =>
    minute.reduce((sum, bucket) => sum + bucket[unit], 0)
  const hour = Math.floor(nowMs / 3_600_000)
  const day = [{ id: hour, requests: total('requests'), tokens: total('tokens') }]
  const [requests = 0, tokens = 0] = known ?? []
  const amounts = {
    ...{ requests_per_minute: requests, requests_per_day: requests, concurrent_requests: 0 },
    ...{ tokens_per_minute: tokens, tokens_per_day: tokens },
  }
  return [
    { field: `k${place.keyId}`, counters: { minute, day }, known: null },
    { field: 'o', counters: { minute, day }, known: known && { atMs: nowMs - agoMs, amounts } },
  ]
}

/** Redis at one side, what was met at the other, and the time of both. */
function createBench(redis: Pick<Redis, 'send' | 'sendToPrimaries'>, name: string) {
  const prefix = `test-${seed}-${name}`
  const bench = {
    nowMs: 0,
    runs: 0,
    met: { admitted: 0, refused: 0, settled: 0, renewed: 0, absorbed: 0 },
  }
  const counters = createRedisCounters({ redis, prefix, nowMs: () => bench.nowMs })
  return Object.assign(bench, { redis, prefix, counters })
}
type Bench = ReturnType<typeof createBench> & { counters: RedisCounters }

/** One sequence: what the model remembers, and which leases may still be held. */
type Sequence = {
  bench: Bench
  state: Windows
  limits: Limits
  live: Map<number, Admitted>
}

const organizationOf = ({ runs }: Bench) => `org-${seed}-${runs}`
const named = (bench: Bench, number: number, at: (typeof places)[number]) => ({
  ...{ organizationId: organizationOf(bench), ...at, leaseId: `req-${number}` },
})

/** Does one step in both places and compares. */
async function take(each: Step, sequence: Sequence): Promise<void> {
  const { bench, state } = sequence
  switch (each.kind) {
    case 'pass':
      bench.nowMs += each.ms
      return
    case 'admit':
      return takeAdmit(each, sequence)
    case 'settle':
      return takeSettle(each, sequence)
    case 'renew':
      return takeRenew(each, sequence)
    case 'absorb': {
      const handOvers = handOver(each, bench.nowMs)
      absorb(state, handOvers, bench.nowMs)
      await bench.counters.absorb(organizationOf(bench), handOvers)
      bench.met.absorbed++
    }
  }
}

async function takeAdmit(each: Extract<Step, { kind: 'admit' }>, sequence: Sequence) {
  const { bench, state, limits, live } = sequence
  const { tokens, leaseMs } = each
  const attempt = { ...named(bench, each.lease, each.place), tokens, leaseMs }
  const expected = admit(state, attempt, limits, bench.nowMs)
  expect(await bench.counters.admit(attempt, limits)).toEqual(expected)
  bench.met[expected.refusal ? 'refused' : 'admitted']++
  if (expected.refusal) expectExactWait(sequence, attempt, expected.refusal)
  if (!expected.refusal && leaseMs > 0) {
    live.set(each.lease, { place: each.place, tokens, atMs: bench.nowMs })
  }
}

/**
 * With nothing else happening the same call fits after the wait, and not a millisecond earlier. Nobody
 * knows when a slot gets free, and what is larger than its limit never fits.
 */
function expectExactWait(
  { bench, state, limits }: Sequence,
  attempt: Attempt,
  { metric, waitMs }: Refusal,
) {
  const isTooLarge = scopes.some(
    (scope) =>
      attempt.tokens > Math.min(limits[scope].tokens_per_minute, limits[scope].tokens_per_day),
  )
  if (metric === 'concurrent_requests' || isTooLarge) return
  const after = (ms: number) =>
    admit(structuredClone(state), attempt, limits, bench.nowMs + ms).refusal?.metric
  expect([undefined, 'concurrent_requests']).toContain(after(waitMs))
  expect(after(waitMs - 1)).toMatch(/_per_/)
}

async function takeSettle(each: Extract<Step, { kind: 'settle' }>, sequence: Sequence) {
  const { bench, state, live } = sequence
  // Mostly one that is running, now and then one that ended long ago.
  const numbers = [...live.keys()]
  const number = numbers[each.lease % Math.max(1, numbers.length)] ?? -1
  const found = live.get(number)
  if (!found) return
  const settlement = {
    ...named(bench, number, found.place),
    ...{ reserved: found.tokens, used: each.used, admittedAtMs: found.atMs },
  }
  const expected = settle(state, settlement, bench.nowMs)
  expect(await bench.counters.settle(settlement)).toBe(expected)
  bench.met.settled++
}

async function takeRenew(each: Extract<Step, { kind: 'renew' }>, sequence: Sequence) {
  const { bench, state, live } = sequence
  const leases = each.leases.flatMap((number) => {
    const found = live.get(number)
    return found ? [named(bench, number, found.place)] : []
  })
  if (leases.length === 0) return
  const expected = renew(state, leases, 60_000, bench.nowMs)
  expect(await bench.counters.renew(leases, 60_000)).toBe(expected)
  bench.met.renewed += leases.length
}

async function expectNoDifference(bench: Bench, numRuns: number) {
  const isConnected = async () => Boolean(await bench.redis.send('', ['PING']))
  await until(isConnected)
  await bench.counters.load()
  const property = fc.asyncProperty(
    limits,
    fc.array(step, { minLength: 5, maxLength: 40 }),
    async (limits, steps) => {
      bench.runs++
      bench.nowMs = 1_700_000_000_000 + (bench.runs % 1000) * 1_000_003
      const sequence = { bench, limits, state: createWindows(), live: new Map() }
      for (const each of steps) await take(each, sequence)
      const organizationId = organizationOf(bench)
      expect(await bench.counters.read(organizationId)).toEqual(
        overview(sequence.state, bench.nowMs),
      )
      const keys = ['c', 'l'].map((kind) => `${bench.prefix}:{${organizationId}}:${kind}`)
      await bench.redis.send(keys[0]!, ['DEL', ...keys])
    },
  )
  await fc.assert(property, { numRuns, seed })
  console.log(`seed ${seed}, ${bench.runs} sequences, ${bench.prefix}`, bench.met)
  for (const count of Object.values(bench.met)) expect(count).toBeGreaterThan(numRuns / 20)
}

test(`${sequences} random sequences: Redis and the model never differ`, async () => {
  const redis = connectPatiently(redisUrl)
  await expectNoDifference(createBench(redis, 'server'), sequences)
  redis.close()
}, 600_000)

test(`${sequencesElsewhere} sequences in a cluster of three: nothing differs, nothing crosses slots`, async () => {
  await using cluster = await startRedisCluster()
  const redis = connectPatiently(cluster.url, true)
  await expectNoDifference(createBench(redis, 'cluster'), sequencesElsewhere)
  redis.close()
  const deletions: number[] = []
  for (const node of cluster.nodes) {
    const info = String(await node.send('', ['INFO', 'all']))
    expect(info).not.toContain('errorstat_CROSSSLOT')
    deletions.push(Number(/cmdstat_del:calls=(\d+)/.exec(info)?.[1] ?? 0))
  }
  // Each organization was deleted once, where it lived.
  console.log('organizations on each node', deletions)
  expect(deletions.reduce((sum, each) => sum + each, 0)).toBe(sequencesElsewhere)
  for (const each of deletions) expect(each).toBeGreaterThan(sequencesElsewhere / 6)
}, 120_000)

test(`${sequencesElsewhere} sequences on a server without functions: the script decides alike`, async () => {
  const redis = connectPatiently(redisUrl)
  const unknown = async () => Promise.reject(new Error("ERR unknown command 'FUNCTION'"))
  let scripts = 0
  const withoutFunctions: Pick<Redis, 'send' | 'sendToPrimaries'> = {
    send: async (key, args) => {
      if (args[0] === 'EVALSHA') scripts++
      return args[0] === 'FCALL' ? unknown() : redis.send(key, args)
    },
    sendToPrimaries: unknown,
  }
  await expectNoDifference(createBench(withoutFunctions, 'script'), sequencesElsewhere)
  redis.close()
  expect(scripts).toBeGreaterThan(sequencesElsewhere)
}, 120_000)
