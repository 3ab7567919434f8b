import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { type Amounts, type Limits, unlimited } from '#limits/limits.ts'
import type { Redis } from '#platform/redis.ts'
import { createRandom } from '#testing/fault-proxy.ts'
import { connectPatiently, type RedisServer, startRedis, until } from '#testing/redis-cluster.ts'

import { createCounters } from './buckets.ts'
import { organizationKeys } from './counter-names.ts'
import { createRedisCounters } from './redis-counters.ts'

// Uses a server of its own, which is flushed and restarted.

const seed = Number(process.env['LIMIT_SEED'] ?? Date.now() % 2 ** 31)
const hourMs = 3_600_000
const dayMs = 24 * hourMs

let server: RedisServer
let redis: Redis
let nowMs = 1_700_000_000_000
beforeAll(async () => {
  server = await startRedis()
  redis = connectPatiently(server.url)
  await until(async () => Boolean(await redis.send('', ['PING'])))
})
afterAll(async () => {
  redis.close()
  await server[Symbol.asyncDispose]()
})
beforeEach(async () => {
  await redis.send('', ['FLUSHALL'])
})

const open = () => createRedisCounters({ redis, prefix: 't', nowMs: () => nowMs })
const keys = organizationKeys('t', 'acme')
const ask = (...args: string[]) => redis.send('', args)

const ids = { organizationId: 'acme', projectId: 'p', keyId: 'k' }
const call = { ...ids, tokens: 100, leaseId: 'req-1', leaseMs: 60_000 }
const everything: Limits = { organization: unlimited, project: unlimited, key: unlimited }

const limited = (amounts: Partial<Amounts>): Limits => ({
  ...everything,
  key: { ...unlimited, ...amounts },
})

/** Every byte of all keys, and when they expire. */
async function bytes() {
  const answers: unknown[] = []
  for (const key of keys) answers.push(await ask('DUMP', key), await ask('PEXPIRETIME', key))
  return answers
}

test('a refused call changes no byte in Redis', async () => {
  const random = createRandom(seed)
  const upTo = (most: number) => Math.floor(random() * (most + 1))
  const counters = open()
  let refused = 0
  for (let round = 0; round < 60; round++) {
    await ask('DEL', ...keys)
    const limits = limited({
      requests_per_minute: 1 + upTo(6),
      tokens_per_minute: 200 + upTo(800),
      requests_per_day: 3 + upTo(20),
      concurrent_requests: 1 + upTo(4),
    })
    for (let number = 0; number < 25; number++) {
      nowMs += random() < 0.1 ? upTo(2 * hourMs) : upTo(9000)
      const before = await bytes()
      const lease = { leaseId: `req-${number}`, leaseMs: 1000 * upTo(60), tokens: upTo(300) }
      const { refusal } = await counters.admit({ ...ids, ...lease }, limits)
      if (!refusal) continue
      refused++
      expect(await bytes(), `seed ${seed}`).toEqual(before)
    }
  }
  console.log(`seed ${seed}, ${refused} refused calls`)
  expect(refused).toBeGreaterThan(100)
})

test('counters and leases expire, also for an organization that is never idle', async () => {
  const counters = open()
  nowMs = 1_700_000_000_000
  for (let hour = 0; hour < 60; hour++) {
    // Virtual time does not age the keys, so their time to live is shortened by an hour.
    for (const key of keys.slice(0, 2)) {
      const left = Number(await ask('PTTL', key))
      if (hour > 0) await ask('PEXPIRE', key, String(left - hourMs))
    }
    // Each call outlasts the start of the next, so the set of leases is never empty.
    await counters.admit({ ...call, leaseId: `req-${hour}`, leaseMs: 2 * hourMs }, everything)
    for (const key of keys.slice(0, 2)) {
      const left = Number(await ask('PTTL', key))
      expect(left).toBeGreaterThan(dayMs)
      expect(left).toBeLessThanOrEqual(dayMs + 2 * hourMs)
    }
    nowMs += hourMs
  }
})

test.for(['renew', 'settle', 'absorb'] as const)(
  '%s on a missing key creates one that expires',
  async (what) => {
    const counters = open()
    const spent = { reserved: 0, used: 5, admittedAtMs: nowMs }
    const bucket = { requests: 1, tokens: 1 }
    const counted = {
      ...createCounters(),
      minute: [{ ...bucket, id: Math.floor(nowMs / 1000) }],
      day: [{ ...bucket, id: Math.floor(nowMs / hourMs) }],
    }
    if (what === 'renew') await counters.renew([{ ...ids, leaseId: 'lost' }], 60_000)
    if (what === 'settle') await counters.settle({ ...call, ...spent })
    if (what === 'absorb') {
      await counters.absorb('acme', [{ field: 'o', counters: counted, lastKnown: null }])
    }
    const key = what === 'renew' ? keys[1] : keys[0]
    expect(Number(await ask('PTTL', key))).toBeGreaterThan(dayMs)
  },
)

test('asking again with the same lease counts once', async () => {
  const counters = open()
  const first = await counters.admit(call, limited({ requests_per_minute: 1 }))
  const again = await counters.admit(call, limited({ requests_per_minute: 1 }))
  expect(again).toEqual(first)
  expect(again.usage.key).toMatchObject({ requests_per_minute: 1, concurrent_requests: 1 })
})

test('of two limits that are reached, the one with the longer wait is reported; of equal waits, slots', async () => {
  const counters = open()
  const limits = limited({ requests_per_minute: 1, concurrent_requests: 1 })
  const long = { ...call, leaseMs: 120_000 }
  expect((await counters.admit(long, limits)).refusal).toBe(null)
  const freeAtMs = (Math.floor(nowMs / 1000) + 1) * 1000 + 60_000
  const refusalAt = async (time: number) => {
    nowMs = time
    return (await counters.admit({ ...long, leaseId: `at-${time}` }, limits)).refusal
  }
  expect(await refusalAt(freeAtMs - 1001)).toMatchObject({
    metric: 'requests_per_minute',
    waitMs: 1001,
  })
  for (const leftMs of [1000, 500])
    expect(await refusalAt(freeAtMs - leftMs)).toMatchObject({
      metric: 'concurrent_requests',
      waitMs: 1000,
    })
})

test('a thousand slots: each scope has exactly its number, and a freed slot can be taken again', async () => {
  const counters = open()
  const slots = (concurrent_requests: number): Amounts => ({ ...unlimited, concurrent_requests })
  const limits = { organization: slots(1000), project: slots(800), key: slots(500) }
  /** How many of 600 calls are admitted, and what refuses the others. */
  const fill = async (place: { projectId: string; keyId: string }) => {
    const verdicts = await Promise.all(
      Array.from({ length: 600 }, (_, number) =>
        counters.admit({ ...call, ...place, leaseId: `${place.keyId}-${number}` }, limits),
      ),
    )
    const refused = verdicts.filter(({ refusal }) => refusal)
    return [600 - refused.length, new Set(refused.map(({ refusal }) => refusal?.scope))]
  }
  expect(await fill({ projectId: 'p', keyId: 'k' })).toEqual([500, new Set(['key'])])
  expect(await fill({ projectId: 'p', keyId: 'k2' })).toEqual([300, new Set(['project'])])
  expect(await fill({ projectId: 'q', keyId: 'k3' })).toEqual([200, new Set(['organization'])])
  const ended = { ...ids, leaseId: 'k-7', reserved: 100, used: 100, admittedAtMs: nowMs }
  expect((await counters.settle(ended)).wasHeld).toBe(true)
  const again = { ...call, leaseId: 'another' }
  expect((await counters.admit(again, limits)).refusal).toBe(null)
  expect((await counters.admit(again, limits)).refusal).toBe(null) // the same lease, so the same slot
  expect((await counters.admit({ ...call, leaseId: 'one more' }, limits)).refusal?.scope).toBe(
    'key',
  )
  nowMs += 60_001
  expect(await fill({ projectId: 'p', keyId: 'k' })).toEqual([500, new Set(['key'])])
})

test('slots are in the index from the first if there may be many; those from before, once they are renewed', async () => {
  const counters = open()
  const leases = Array.from({ length: 200 }, (_, number) => ({ ...ids, leaseId: `req-${number}` }))
  const { organization } = everything
  const few = { ...everything, organization: { ...organization, concurrent_requests: 64 } }
  const indexed = async () => Number(await ask('ZCARD', keys[2])) / 3
  for (const lease of leases.slice(0, 10)) await counters.admit({ ...call, ...lease }, few)
  expect(await indexed()).toBe(0)
  for (const lease of leases.slice(10)) await counters.admit({ ...call, ...lease }, everything)
  expect(Number(await ask('PTTL', keys[2]))).toBeGreaterThan(dayMs)
  expect(await indexed()).toBe(190)
  nowMs += 20_000
  expect(await counters.renew(leases, 60_000)).toBe(200)
  expect(await indexed()).toBe(200)
  await counters.release(leases)
  expect(await indexed()).toBe(0)
})

test('unused tokens are given back once', async () => {
  const counters = open()
  await counters.admit(call, everything)
  await counters.admit({ ...call, leaseId: 'req-2' }, everything)
  const spent = { reserved: 100, used: 30, admittedAtMs: nowMs }
  expect((await counters.settle({ ...call, ...spent })).wasHeld).toBe(true)
  expect((await counters.settle({ ...call, ...spent })).wasHeld).toBe(false)
  const { organization } = await counters.read('acme')
  expect(organization).toMatchObject({ tokens_per_minute: 130, concurrent_requests: 1 })
})

test('a server that lost its functions gets them again, and decides about the call', async () => {
  const counters = open()
  await counters.admit(call, everything)
  await ask('FUNCTION', 'FLUSH')
  const { usage } = await counters.admit({ ...call, leaseId: 'req-2' }, everything)
  expect(usage.organization.requests_per_minute).toBe(2)
})

/** Functions have a connection of their own: the server itself must say that it has no such function. */
async function hasReconnected() {
  await redis.send('', ['PING'])
  const answer = await redis.send('', ['FCALL', 'none', '0']).catch((error: Error) => error.message)
  return String(answer).includes('Function not found')
}

test('a server that was restarted gets the functions again', async () => {
  const counters = open()
  await counters.admit(call, everything)
  await server.restart()
  await until(hasReconnected)
  const { usage } = await counters.admit({ ...call, leaseId: 'req-2' }, everything)
  expect(usage.organization.requests_per_minute).toBe(1)
})

test('a server without functions that lost its scripts gets them again', async () => {
  const unknown = async () => Promise.reject(new Error("ERR unknown command 'FCALL'"))
  const counters = createRedisCounters({
    redis: {
      deadlineMs: redis.deadlineMs,
      send: (key, args) => (args[0] === 'FCALL' ? unknown() : redis.send(key, args)),
      sendToPrimaries: unknown,
    },
    prefix: 't',
    nowMs: () => nowMs,
  })
  await counters.admit(call, everything)
  await ask('SCRIPT', 'FLUSH')
  const { usage } = await counters.admit({ ...call, leaseId: 'req-2' }, everything)
  expect(usage.organization.requests_per_minute).toBe(2)
})
