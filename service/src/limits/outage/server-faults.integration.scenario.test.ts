import { describe, expect, test } from 'vitest'

import { organizationKeys } from '#limits/counters/counter-names.ts'
import { createRedisCounters } from '#limits/counters/redis-counters.ts'
import { type Limits, unlimited } from '#limits/limits.ts'
import { createMetrics } from '#platform/metrics.ts'
import { connectRedis, type Redis } from '#platform/redis.ts'
import { connectPatiently, startRedis, until } from '#testing/redis-cluster.ts'
import { silentLog } from '#testing/silent-log.ts'

import { createCountersWithFallback } from './counters-with-fallback.ts'

// A Redis that is there, and does not do what it is asked to. Two processes admit calls of one key meanwhile: each gets
// a decision, the limit holds, and both count in Redis again when the fault is over.

const limit = 60
const processes = 2
const calls = 110
const lanes = 3
/** How many calls are made before a fault in the middle. */
const before = 30

const place = { organizationId: 'acme', projectId: 'p', keyId: 'k' }
const limits: Limits = {
  organization: unlimited,
  project: unlimited,
  key: { ...unlimited, requests_per_minute: limit },
}

type Fault = {
  name: string
  /** Runs in the middle of the calls, or before them. */
  cause: string[]
  isFromTheStart?: boolean
  end?: string[]
  /** The error that Redis itself must have counted: the fault was there. */
  error?: string
  /** How many calls may be admitted beyond the limit and one for each process. */
  forgotten?: number
}

const [counts] = organizationKeys('f', place.organizationId)
const faults: Fault[] = [
  { name: 'none', cause: ['PING'] },
  {
    name: 'it has become a replica',
    cause: ['REPLICAOF', '127.0.0.1', '1'],
    isFromTheStart: true,
    end: ['REPLICAOF', 'NO', 'ONE'],
    error: 'READONLY',
  },
  {
    name: 'it is out of memory',
    cause: ['CONFIG', 'SET', 'maxmemory', '1'],
    isFromTheStart: true,
    end: ['CONFIG', 'SET', 'maxmemory', '0'],
    error: 'OOM',
  },
  { name: 'it answers no client for a while', cause: ['CLIENT', 'PAUSE', '1500', 'ALL'] },
  { name: 'it stands still for a while', cause: ['DEBUG', 'SLEEP', '1.5'] },
  { name: 'it loses its functions', cause: ['FUNCTION', 'FLUSH'], error: 'ERR' },
  // Whatever was admitted before is not known any more.
  { name: 'it loses everything', cause: ['FLUSHALL'], forgotten: before + lanes },
  {
    name: 'its counts are of another type',
    cause: ['EVAL', "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], 'x')", '1', counts],
    end: ['DEL', counts],
    error: 'WRONGTYPE',
  },
  { name: 'it ends all connections', cause: ['CLIENT', 'KILL', 'TYPE', 'normal'] },
]

async function startProcess(url: string) {
  const quiet = { onProblem: () => undefined, onReady: () => undefined }
  const redis = connectRedis({ url, isCluster: false, deadlineMs: 100, ...quiet })
  await until(async () => Boolean(await redis.send('', ['PING'])))
  const counters = createCountersWithFallback({
    kind: 'inference',
    redis: createRedisCounters({ redis, prefix: 'f' }),
    now: () => new Date(),
    log: silentLog,
    metrics: createMetrics(),
    processes: () => processes,
  })
  return {
    counters,
    stop: () => {
      counters.stop()
      redis.close()
    },
  }
}
type Process = Awaited<ReturnType<typeof startProcess>>

/** Calls one after the other in each lane; returns how many were admitted. */
async function callAll(running: readonly Process[], onMiddle: () => void): Promise<number> {
  let [sent, admitted] = [0, 0]
  const lane = async () => {
    while (sent < calls) {
      const number = sent++
      if (number === before) onMiddle()
      const { counters } = running[number % running.length]!
      const lease = { ...place, leaseId: `req-${number}` }
      const verdict = await counters.admit({ ...lease, leaseMs: 60_000, tokens: 10 }, limits)
      if (verdict.refusal) continue
      admitted++
      await counters.settle({ ...lease, reserved: 10, used: 10, admittedAtMs: verdict.nowMs })
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return admitted
}

const errorsOf = async (redis: Redis, error: string) => {
  const stats = String(await redis.send('', ['INFO', 'errorstats']))
  return Number(new RegExp(`errorstat_${error}:count=(\\d+)`).exec(stats)?.[1] ?? 0)
}

describe.concurrent('the limit holds, and both processes come back', () => {
  test.each(faults)('$name', async ({ cause, isFromTheStart, end, error, forgotten = 0 }) => {
    await using server = await startRedis(['--enable-debug-command', 'local'])
    const operator = connectPatiently(server.url)
    const running = [await startProcess(server.url), await startProcess(server.url)]
    try {
      const fail = () => operator.send('', cause).catch(() => undefined)
      if (isFromTheStart) await fail()
      let failing: Promise<unknown> | undefined
      const admitted = await callAll(running, () => {
        if (!isFromTheStart) failing = fail()
      })
      await failing
      expect(admitted).toBeGreaterThanOrEqual(limit / 2)
      expect(admitted).toBeLessThanOrEqual(limit + processes + forgotten)
      await until(async () => error === undefined || (await errorsOf(operator, error)) > 0)
      if (end) await operator.send('', end)
      await until(async () => running.every(({ counters }) => counters.isExact()))
    } finally {
      for (const { stop } of running) stop()
      operator.close()
    }
  })
})
