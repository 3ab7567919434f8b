import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

import { connectRedis, type Redis } from '#platform/redis.ts'
import { redisUrl } from '#testing/servers.ts'

import type { Limits } from './limits.ts'
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
// verdict, wait and count must be the same. LIMIT_SEQUENCES sets how many, LIMIT_SEED repeats a run.

const sequences = Number(process.env['LIMIT_SEQUENCES'] ?? 10_000)
const seed = Number(process.env['LIMIT_SEED'] ?? Date.now() % 2 ** 31)

let redis: Redis
let nowMs = 0
let counters: RedisCounters
beforeAll(async () => {
  const quiet = { onProblem: () => undefined, onReady: () => undefined }
  redis = connectRedis({ url: redisUrl, isCluster: false, deadlineMs: 5000, ...quiet })
  counters = createRedisCounters({ redis, prefix: `test-${seed}`, nowMs: () => nowMs })
  const isLoaded = () =>
    counters.load().then(
      () => true,
      () => false,
    )
  await vi.waitUntil(isLoaded, { timeout: 5000 })
})
afterAll(() => redis.close())

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

function handOver({ place, agoMs, counted, known }: Extract<Step, { kind: 'absorb' }>): HandOver[] {
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

let runs = 0
const met = { admitted: 0, refused: 0, settled: 0, renewed: 0, absorbed: 0 }

/** Does one step in both places and compares. */
async function take(each: Step, state: Windows, limits: Limits, live: Map<number, Admitted>) {
  const organizationId = `org-${seed}-${runs}`
  const named = (number: number, at: (typeof places)[number]) => ({
    ...{ organizationId, ...at, leaseId: `req-${number}` },
  })
  switch (each.kind) {
    case 'pass':
      nowMs += each.ms
      return
    case 'admit': {
      const { tokens, leaseMs } = each
      const attempt = { ...named(each.lease, each.place), tokens, leaseMs }
      const expected = admit(state, attempt, limits, nowMs)
      expect(await counters.admit(attempt, limits)).toEqual(expected)
      met[expected.refusal ? 'refused' : 'admitted']++
      if (!expected.refusal && leaseMs > 0) {
        live.set(each.lease, { place: each.place, tokens, atMs: nowMs })
      }
      return
    }
    case 'settle': {
      // Mostly one that is running, now and then one that ended long ago.
      const numbers = [...live.keys()]
      const number = numbers[each.lease % Math.max(1, numbers.length)] ?? -1
      const found = live.get(number)
      if (!found) return
      const settlement = {
        ...named(number, found.place),
        ...{ reserved: found.tokens, used: each.used, admittedAtMs: found.atMs },
      }
      const expected = settle(state, settlement, nowMs)
      expect(await counters.settle(settlement)).toBe(expected)
      met.settled++
      return
    }
    case 'renew': {
      const leases = each.leases.flatMap((number) => {
        const found = live.get(number)
        return found ? [named(number, found.place)] : []
      })
      if (leases.length === 0) return
      const expected = renew(state, leases, 60_000, nowMs)
      expect(await counters.renew(leases, 60_000)).toBe(expected)
      met.renewed += leases.length
      return
    }
    case 'absorb': {
      const handOvers = handOver(each)
      absorb(state, handOvers, nowMs)
      await counters.absorb(organizationId, handOvers)
      met.absorbed++
    }
  }
}

test(`${sequences} random sequences: Redis and the model never differ`, async () => {
  await fc.assert(
    fc.asyncProperty(
      limits,
      fc.array(step, { minLength: 5, maxLength: 40 }),
      async (limits, steps) => {
        runs++
        nowMs = 1_700_000_000_000 + (runs % 1000) * 1_000_003
        const state = createWindows()
        const live = new Map<number, Admitted>()
        for (const each of steps) await take(each, state, limits, live)
        const organizationId = `org-${seed}-${runs}`
        expect(await counters.read(organizationId)).toEqual(overview(state, nowMs))
        const keys = ['c', 'l'].map((kind) => `test-${seed}:{${organizationId}}:${kind}`)
        await redis.send(keys[0]!, ['DEL', ...keys])
      },
    ),
    { numRuns: sequences, seed },
  )
  console.log(`seed ${seed}, ${runs} sequences`, met)
  for (const count of Object.values(met)) expect(count).toBeGreaterThan(sequences / 20)
}, 600_000)
