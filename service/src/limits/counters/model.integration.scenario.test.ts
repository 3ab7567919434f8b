import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { limitMetrics } from '#limits/limit-metrics.ts'
import {
  type Amounts,
  type LimitedCall,
  type Limits,
  type Refusal,
  scopes,
} from '#limits/limits.ts'
import { connectPatiently, startRedisCluster, until } from '#testing/redis-cluster.ts'
import { redisUrl } from '#testing/servers.ts'

import { absorb, type ScopeCounts } from './absorb.ts'
import { createCounters } from './buckets.ts'
import { organizationKeys } from './counter-names.ts'
import type { RedisCommands } from './function-library.ts'
import { createOrganizationCounts, type OrganizationCounts } from './organization-counts.ts'
import { createRedisCounters, type RedisCounters } from './redis-counters.ts'
import { admit, renew, settle } from './rolling-window.ts'
import { asFirstVersion, indexingAlways } from './testing/other-libraries.ts'
import { organizationUsage } from './usage.ts'

// Runs random sequences in virtual time through limiter.lua and through the model in TypeScript: on one server,
// in a cluster, on a server without functions, with every slot counted in the index, and beside the first version of the
// library. Every verdict, wait and count must be the same.
// LIMIT_SEQUENCES sets the number of sequences, LIMIT_SEED repeats a run.

const sequences = sizeOf({ usual: 5000, long: 50_000, variable: 'LIMIT_SEQUENCES' })
const sequencesElsewhere = Math.min(sequences, 500)
const seed = Number(process.env['LIMIT_SEED'] ?? Date.now() % 2 ** 31)

/** Some ids are prefixes of others, which would show a match by prefix. */
const scopeIds = [
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
    const limitOf = ({ unit, window }: (typeof limitMetrics)[number], factor: number) => {
      if (unit === 'slots') return isUnlimited ? Infinity : Math.ceil(slots * factor)
      if (window === 'minute') return Math.floor((unit === 'requests' ? requests : tokens) * factor)
      if (unit === 'requests') return isUnlimited ? Infinity : Math.floor(day * factor)
      return factor === 2 ? tokens * 8 : Infinity
    }
    const times = (factor: number) =>
      Object.fromEntries(limitMetrics.map((row) => [row.metric, limitOf(row, factor)])) as Amounts
    return { organization: times(2), project: times(1.5), key: times(1) }
  })

const ids = fc.constantFrom(...scopeIds)
const lease = fc.nat(30)
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('admit' as const),
      ids,
      lease,
      tokens: fc.integer({ min: 0, max: 400 }),
      leaseMs: fc.constantFrom(0, 1000, 30_000, 60_000),
      isOfMinute: fc.boolean(),
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
        fc.integer({ min: -2000, max: -1 }), // the clock steps back
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('absorb' as const),
      ids,
      agoMs: fc.integer({ min: 0, max: 120_000 }),
      counted: fc.array(fc.tuple(fc.nat(70), fc.nat(5), fc.nat(300)), { maxLength: 4 }),
      known: fc.option(fc.tuple(fc.nat(20), fc.nat(1000))),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
type Ids = (typeof scopeIds)[number]
type Admitted = { ids: Ids; tokens: number; atMs: number; countsInMinuteOnly: boolean }

function scopesOf(
  { ids, agoMs, counted, known }: Extract<Step, { kind: 'absorb' }>,
  nowMs: number,
): ScopeCounts[] {
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
  const counters = { ...createCounters(), minute, day }
  const [requests = 0, tokens = 0] = known ?? []
  const amountOf = { requests, tokens, slots: 0 }
  const amounts = Object.fromEntries(
    limitMetrics.map(({ metric, unit }) => [metric, amountOf[unit]]),
  ) as Amounts
  return [
    { field: `k${ids.keyId}`, counters, lastKnown: null },
    { field: 'o', counters, lastKnown: known && { atMs: nowMs - agoMs, amounts } },
  ]
}

/** Counters in Redis with a clock of their own, and how often each outcome occurred. */
function createBench(redis: RedisCommands, name: string, other?: RedisCommands) {
  const prefix = `test-${seed}-${name}`
  const bench = {
    nowMs: 0,
    runs: 0,
    outcomes: { admitted: 0, refused: 0, settled: 0, renewed: 0, absorbed: 0 },
  }
  const open = (through: RedisCommands) =>
    createRedisCounters({ redis: through, prefix, nowMs: () => bench.nowMs })
  const counters = other ? takeTurns(open(redis), open(other)) : open(redis)
  return Object.assign(bench, { redis, prefix, counters, hasFirstVersion: other !== undefined })
}
/** Counters of two versions: calls of even numbers belong to processes of the one, the others to those of the other. */
function takeTurns(one: RedisCounters, other: RedisCounters): RedisCounters {
  const isOfOne = ({ leaseId }: { leaseId: string }) => Number(leaseId.split('-')[1]) % 2 === 0
  const ownerOf = (lease: { leaseId: string }) => (isOfOne(lease) ? one : other)
  return {
    ...one,
    async load() {
      await one.load()
      await other.load()
    },
    admit: (call, limits) => ownerOf(call).admit(call, limits),
    settle: (settlement) => ownerOf(settlement).settle(settlement),
    async renew(leases, leaseMs) {
      const held = await one.renew(leases.filter(isOfOne), leaseMs)
      return (
        held +
        (await other.renew(
          leases.filter((lease) => !isOfOne(lease)),
          leaseMs,
        ))
      )
    },
  }
}

type Bench = ReturnType<typeof createBench> & { counters: RedisCounters }

/** One sequence: the counts of the model, and the leases that may still be held. */
type Sequence = {
  bench: Bench
  model: OrganizationCounts
  limits: Limits
  live: Map<number, Admitted>
}

const organizationOf = ({ runs }: Bench) => `org-${seed}-${runs}`
const named = (bench: Bench, number: number, at: Ids) => ({
  organizationId: organizationOf(bench),
  ...at,
  leaseId: `req-${number}`,
})

/** Takes one step in Redis and in the model, and compares. */
async function take(each: Step, sequence: Sequence): Promise<void> {
  const { bench, model } = sequence
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
      const counted = scopesOf(each, bench.nowMs)
      absorb(model, counted, bench.nowMs)
      await bench.counters.absorb(organizationOf(bench), counted)
      bench.outcomes.absorbed++
    }
  }
}

async function takeAdmit(each: Extract<Step, { kind: 'admit' }>, sequence: Sequence) {
  const { bench, model, limits, live } = sequence
  const { tokens, leaseMs } = each
  // Calls of odd numbers may be those of the first version, which knows no such tokens.
  const countsInMinuteOnly = each.isOfMinute && each.lease % 2 === 0
  const call = { ...named(bench, each.lease, each.ids), tokens, leaseMs, countsInMinuteOnly }
  const expected = admit(model, call, limits, bench.nowMs)
  const found = await bench.counters.admit(call, limits)
  // Where several limits are reached, the first version names slots only if nothing else refuses.
  const mayNameAnother = bench.hasFirstVersion && each.lease % 2 === 1 && expected.refusal !== null
  const refusal = mayNameAnother && found.refusal ? found.refusal : expected.refusal
  expect(found).toEqual({ ...expected, refusal })
  bench.outcomes[expected.refusal ? 'refused' : 'admitted']++
  if (expected.refusal) expectExactWait(sequence, call, expected.refusal)
  if (!expected.refusal && leaseMs > 0) {
    live.set(each.lease, { ids: each.ids, tokens, atMs: bench.nowMs, countsInMinuteOnly })
  }
}

/**
 * Without other calls, and with slots enough, the same call fits after the wait, and not a millisecond earlier. This does not
 * hold for slots, nor for a call that is larger than its limit.
 */
function expectExactWait(
  { bench, model, limits }: Sequence,
  call: LimitedCall,
  { metric, waitMs }: Refusal,
) {
  const isTooLarge = scopes.some(
    (scope) =>
      call.tokens >
      Math.min(
        limits[scope].tokens_per_minute,
        call.countsInMinuteOnly ? Infinity : limits[scope].tokens_per_day,
      ),
  )
  if (metric === 'concurrent_requests' || isTooLarge) return
  const free = { concurrent_requests: Infinity }
  const windows = {
    organization: { ...limits.organization, ...free },
    project: { ...limits.project, ...free },
    key: { ...limits.key, ...free },
  }
  const after = (ms: number) =>
    admit(structuredClone(model), call, windows, bench.nowMs + ms).refusal?.metric
  expect(after(waitMs)).toBeUndefined()
  expect(after(waitMs - 1)).toMatch(/_per_/)
}

async function takeSettle(each: Extract<Step, { kind: 'settle' }>, sequence: Sequence) {
  const { bench, model, live } = sequence
  // Usually a running call, sometimes one that ended long ago.
  const numbers = [...live.keys()]
  const number = numbers[each.lease % Math.max(1, numbers.length)] ?? -1
  const found = live.get(number)
  if (!found) return
  const settlement = {
    ...named(bench, number, found.ids),
    reserved: found.tokens,
    used: each.used,
    admittedAtMs: found.atMs,
    countsInMinuteOnly: found.countsInMinuteOnly,
  }
  const expected = settle(model, settlement, bench.nowMs)
  expect(await bench.counters.settle(settlement)).toEqual(expected)
  bench.outcomes.settled++
}

async function takeRenew(each: Extract<Step, { kind: 'renew' }>, sequence: Sequence) {
  const { bench, model, live } = sequence
  const leases = each.leases.flatMap((number) => {
    const found = live.get(number)
    return found ? [named(bench, number, found.ids)] : []
  })
  if (leases.length === 0) return
  const expected = renew(model, leases, 60_000, bench.nowMs)
  expect(await bench.counters.renew(leases, 60_000)).toBe(expected)
  bench.outcomes.renewed += leases.length
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
      const sequence = { bench, limits, model: createOrganizationCounts(), live: new Map() }
      for (const each of steps) await take(each, sequence)
      const organizationId = organizationOf(bench)
      expect(await bench.counters.read(organizationId)).toEqual(
        organizationUsage(sequence.model, bench.nowMs),
      )
      const keys = organizationKeys(bench.prefix, organizationId)
      await bench.redis.send(keys[0], ['DEL', ...keys])
    },
  )
  await fc.assert(property, { numRuns, seed })
  console.log(`seed ${seed}, ${bench.runs} sequences, ${bench.prefix}`, bench.outcomes)
  for (const count of Object.values(bench.outcomes)) expect(count).toBeGreaterThan(numRuns / 20)
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
  // Each organization was deleted once, on its node.
  console.log('organizations on each node', deletions)
  expect(deletions.reduce((sum, each) => sum + each, 0)).toBe(sequencesElsewhere)
  for (const each of deletions) expect(each).toBeGreaterThan(sequencesElsewhere / 6)
}, 120_000)

test(`${sequencesElsewhere} sequences on a server without functions: the script decides alike`, async () => {
  const redis = connectPatiently(redisUrl)
  const unknown = async () => Promise.reject(new Error("ERR unknown command 'FUNCTION'"))
  let scripts = 0
  const withoutFunctions: RedisCommands = {
    deadlineMs: redis.deadlineMs,
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

test(`${sequencesElsewhere} sequences with every slot counted in the index: nothing differs`, async () => {
  const redis = connectPatiently(redisUrl)
  await expectNoDifference(createBench(indexingAlways(redis), 'index'), sequencesElsewhere)
  redis.close()
}, 120_000)

test(`${sequencesElsewhere} sequences by processes of both versions in turns: nothing differs`, async () => {
  const redis = connectPatiently(redisUrl)
  const bench = createBench(indexingAlways(redis), 'versions', asFirstVersion(redis))
  await expectNoDifference(bench, sequencesElsewhere)
  redis.close()
}, 120_000)
