import { afterAll, beforeAll, expect, test } from 'vitest'

import { isAdmitted, type Limits, unlimited } from '#limits/limits.ts'
import { type QuotaRules, toCallQuotas } from '#limits/quotas/quota.ts'
import { limitsByTier } from '#limits/tiers.ts'
import type { Redis } from '#platform/redis.ts'
import { connectPatiently, type RedisServer, startRedis, until } from '#testing/redis-cluster.ts'

import { createCounters } from './buckets.ts'
import { createRedisCounters, type RedisCounters } from './redis-counters.ts'

// What a decision costs, as a ratio to a fixed Lua loop that the same server runs through the same client in the
// same window. The machine is shared: several windows are measured and the best one counts.

const windowsMin = 2
const windowsMax = 8
const pairsPerWindow = 5000
/** The baseline. On a quiet machine a decision costs about a third of it, one of a busy organization a half. */
const loop = 'local t = {} for i = 1, 150 do t[i] = tostring(i) end return #table.concat(t)'
const cpuRatioMax = 0.6
const cpuRatioMaxBusy = 1
/** Reading every running call took about ten times as long. */
const cpuRatioMaxCrowded = 2
/** A quota of the user for the day, one of the project for the month, and a budget of the organization. */
const cpuRatioMaxQuotas = 2
const latencyRatioMax = 1
const inFlight = 16
const organizations = 50
const keysPerOrganization = 3

let server: RedisServer
let redis: Redis
let counters: RedisCounters
beforeAll(async () => {
  server = await startRedis()
  redis = connectPatiently(server.url)
  counters = createRedisCounters({ redis, prefix: 'cost' })
  await until(async () => Boolean(await redis.send('', ['PING'])))
  await counters.load()
})
afterAll(async () => {
  redis.close()
  await server[Symbol.asyncDispose]()
})

type Kind = 'light' | 'busy' | 'crowded' | 'quotas'

const placeOf = (kind: Kind, number: number) => {
  const organization = `${kind}-${number % organizations}`
  const key = Math.floor(number / organizations) % keysPerOrganization
  return {
    organizationId: `org-${organization}`,
    projectId: `prj-${organization}`,
    keyId: `key-${organization}-${key}`,
  }
}

/** An organization that called in each of the last 30 seconds and 23 hours, and has five calls running. */
async function makeBusy(index: number) {
  const { organizationId, projectId } = placeOf('busy', index)
  const [second, hour] = [Math.floor(Date.now() / 1000), Math.floor(Date.now() / 3_600_000)]
  const ago = (now: number, count: number) =>
    Array.from({ length: count }, (_, age) => ({ id: now - count + age, requests: 1, tokens: 900 }))
  const busy = { ...createCounters(), minute: ago(second, 30), day: ago(hour, 23) }
  const keys = Array.from({ length: keysPerOrganization }, (_, key) => `kkey-busy-${index}-${key}`)
  await counters.absorb(
    organizationId,
    ['o', `p${projectId}`, ...keys].map((field) => ({ field, counters: busy, lastKnown: null })),
  )
  for (let call = 0; call < 5; call++) {
    const place = placeOf('busy', index + organizations * call)
    const lease = { leaseId: `running-${index}-${call}`, leaseMs: 600_000, tokens: 900 }
    await counters.admit({ ...place, ...lease }, limitsByTier.tier_5)
  }
}

const crowdedSlots = 3000
const roomy = { ...unlimited, concurrent_requests: 1_000_000 }
const limitsOf = {
  light: limitsByTier.tier_5,
  busy: limitsByTier.tier_5,
  crowded: { organization: roomy, project: roomy, key: roomy },
  quotas: limitsByTier.tier_5,
} as const satisfies Record<Kind, Limits>

/** An organization with thousands of running calls. */
async function makeCrowded(index: number) {
  const { organizationId } = placeOf('crowded', index)
  const leases = Array.from({ length: crowdedSlots }, (_, call) => ({
    ...placeOf('crowded', index + organizations * call),
    leaseId: `running-${index}-${call}`,
  }))
  expect(leases.every((lease) => lease.organizationId === organizationId)).toBe(true)
  // The first ones as calls take them: all of them must be in the index, or every later decision reads all leases.
  for (const lease of leases.slice(0, 100)) {
    await counters.admit({ ...lease, leaseMs: 600_000, tokens: 1 }, limitsOf.crowded)
  }
  for (let from = 100; from < leases.length; from += 500) {
    await counters.renew(leases.slice(from, from + 500), 600_000)
  }
}

const many = 2_000_000_000
const rulesOf = (projectId: string): QuotaRules => ({
  quotas: [
    { scope: 'user', subject: 'somebody', window: 'daily', requests: many, tokens: many },
    { scope: 'project', subject: projectId, window: 'monthly', requests: many, tokens: many },
  ],
  budgets: [
    { scope: 'organization', subject: '', credits: many, alertPercents: [], hasHardStop: true },
  ],
  areQuotasEnforced: true,
  policy: null,
})

/** What a call reserves, with amounts for counters that are missing: those of the first call. */
function quotasOf(kind: Kind, leaseId: string, projectId: string) {
  if (kind !== 'quotas') return undefined
  const asked = { rules: rulesOf(projectId), leaseId, tokens: 1200, credits: 5000 }
  const quotas = toCallQuotas({ ...asked, nowMs: Date.now() })!
  const nothing = { requests: 0, tokens: 0, credits: 0 }
  const amounts = new Map(quotas.counters.map((counter) => [counter, nothing]))
  return { ...quotas, known: { askedAtMs: Date.now(), amounts } }
}

let refused = 0
async function admitAndSettle(kind: Kind, number: number) {
  const place = placeOf(kind, number)
  const lease = { leaseId: `01HZX4T9Q0-${number}`, leaseMs: 60_000 }
  const quotas = quotasOf(kind, lease.leaseId, place.projectId)
  const verdict = await counters.admit({ ...place, ...lease, tokens: 1200, quotas }, limitsOf[kind])
  if (!isAdmitted(verdict)) refused++
  const spent = { reserved: 1200, used: 700, usedCredits: 900, admittedAtMs: verdict.nowMs, quotas }
  await counters.settle({ ...place, leaseId: lease.leaseId, ...spent })
}

async function loopTwice() {
  await redis.send('', ['EVAL', loop, '0'])
  await redis.send('', ['EVAL', loop, '0'])
}

/** How long each took, in ms, shortest first. */
async function timesOf(work: (number: number) => Promise<void>, first: number) {
  const times: number[] = []
  let next = first
  const worker = async () => {
    while (next < first + pairsPerWindow) {
      const startedAt = performance.now()
      await work(next++)
      times.push(performance.now() - startedAt)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  return times.toSorted((left, right) => left - right)
}

const at = (times: readonly number[], part: number) => times[Math.floor(times.length * part)]!

async function measure(kind: Kind, window: number) {
  await redis.send('', ['CONFIG', 'RESETSTAT'])
  const loops = await timesOf(loopTwice, 0)
  const work = (number: number) => admitAndSettle(kind, number)
  const pairs = await timesOf(work, window * pairsPerWindow)
  const info = String(await redis.send('', ['INFO', 'commandstats']))
  const decision = statsOf('fcall', info)
  const baseline = statsOf('eval', info)
  return {
    calls: decision.calls,
    cpuUs: decision.cpuUs,
    loopCpuUs: baseline.cpuUs,
    cpuRatio: rounded(decision.cpuUs / baseline.cpuUs),
    pairP50Ms: rounded(at(pairs, 0.5)),
    loopP50Ms: rounded(at(loops, 0.5)),
    latencyRatio: rounded(at(pairs, 0.5) / at(loops, 0.5)),
    pairP99Ms: rounded(at(pairs, 0.99)),
    loopP99Ms: rounded(at(loops, 0.99)),
  }
}

const rounded = (number: number) => Math.round(number * 100) / 100

function statsOf(command: string, info: string) {
  const pattern = new RegExp(`cmdstat_${command}:calls=(\\d+),.*?usec_per_call=([\\d.]+)`)
  const [, calls, cpuUs] = pattern.exec(info) ?? []
  return { calls: Number(calls), cpuUs: Number(cpuUs) }
}
type Row = Awaited<ReturnType<typeof measure>>

async function measureUntil(kind: Kind, isEnough: (rows: readonly Row[]) => boolean) {
  const rows: Row[] = []
  while (rows.length < windowsMin || (rows.length < windowsMax && !isEnough(rows))) {
    rows.push(await measure(kind, rows.length))
  }
  console.log(`${kind}: ${pairsPerWindow} pairs each, ${inFlight} in flight`)
  console.table(rows)
  expect(refused).toBe(0)
  for (const { calls } of rows) expect(calls).toBe(2 * pairsPerWindow)
  return rows
}

const least = (rows: readonly Row[], column: 'cpuRatio' | 'latencyRatio') =>
  Math.min(...rows.map((row) => row[column]))

test(`a decision costs Redis at most ${cpuRatioMax} fixed loops, and a caller waits at most as long`, async () => {
  const rows = await measureUntil(
    'light',
    (all) => least(all, 'cpuRatio') <= cpuRatioMax && least(all, 'latencyRatio') <= latencyRatioMax,
  )
  expect(least(rows, 'cpuRatio')).toBeLessThanOrEqual(cpuRatioMax)
  expect(least(rows, 'latencyRatio')).toBeLessThanOrEqual(latencyRatioMax)
})

test('with two quotas and a budget a decision costs at most twice a fixed loop', async () => {
  const rows = await measureUntil('quotas', (all) => least(all, 'cpuRatio') <= cpuRatioMaxQuotas)
  expect(least(rows, 'cpuRatio')).toBeLessThanOrEqual(cpuRatioMaxQuotas)
})

test('for organizations busy for a day a decision costs little more', async () => {
  for (let index = 0; index < organizations; index++) await makeBusy(index)
  const rows = await measureUntil('busy', (all) => least(all, 'cpuRatio') <= cpuRatioMaxBusy)
  expect(least(rows, 'cpuRatio')).toBeLessThanOrEqual(cpuRatioMaxBusy)
})

test(`with ${crowdedSlots} running calls in each organization a decision costs little more`, async () => {
  for (let index = 0; index < organizations; index++) await makeCrowded(index)
  const rows = await measureUntil('crowded', (all) => least(all, 'cpuRatio') <= cpuRatioMaxCrowded)
  expect(least(rows, 'cpuRatio')).toBeLessThanOrEqual(cpuRatioMaxCrowded)
})
