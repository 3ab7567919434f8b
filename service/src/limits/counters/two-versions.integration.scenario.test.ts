import { setTimeout as sleep } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { type Amounts, type Limits, type Scope, scopes, unlimited } from '#limits/limits.ts'
import { createRandom } from '#testing/fault-proxy.ts'
import { useRedis } from '#testing/redis-cluster.ts'

import { organizationKeys } from './counter-names.ts'
import { createRedisCounters, type RedisCounters } from './redis-counters.ts'
import { asFirstVersion } from './testing/other-libraries.ts'

// A rollout under load: processes of the first version of the library and of the current one count the same calls in
// the same Redis. The test keeps its own account of who holds a slot. LIMIT_SEED repeats a run as far as timing allows.

const seed = Number(process.env['LIMIT_SEED'] ?? Date.now() % 2 ** 31)

const redis = useRedis()

const slotLimits: Record<Scope, number> = { organization: 330, project: 250, key: 180 }
const requestsMax = 6000
const limitsOf = (scope: Scope): Amounts => ({
  ...unlimited,
  concurrent_requests: slotLimits[scope],
  requests_per_day: scope === 'organization' ? requestsMax : Infinity,
})
const limits = Object.fromEntries(scopes.map((scope) => [scope, limitsOf(scope)])) as Limits

/** One key of a project, another key of it, and one of another project. */
const places = [
  { organizationId: 'acme', projectId: 'a', keyId: '1' },
  { organizationId: 'acme', projectId: 'a', keyId: '2' },
  { organizationId: 'acme', projectId: 'b', keyId: '3' },
] as const
/** Of ten callers: more than each scope has slots for. */
const wanted = [0, 0, 0, 0, 0, 0, 1, 1, 2, 2] as const
type Place = (typeof places)[number]

/** Who holds slots now, and the most that were ever held at once. */
function createAccount() {
  const now = new Map<string, number>()
  const most = new Map<string, number>()
  const namesOf = ({ projectId, keyId }: Place) => ['organization', projectId, keyId]
  const add = (place: Place, change: 1 | -1) => {
    for (const name of namesOf(place)) {
      const held = (now.get(name) ?? 0) + change
      now.set(name, held)
      most.set(name, Math.max(most.get(name) ?? 0, held))
    }
  }
  return { now, most, add }
}

test('while both versions run, no limit is exceeded, and nothing is lost or counted twice', async () => {
  const random = createRandom(seed)
  const first = createRedisCounters({ redis: asFirstVersion(redis()), prefix: 'roll' })
  const current = createRedisCounters({ redis: redis(), prefix: 'roll' })
  await Promise.all([first.load(), current.load()])
  const account = createAccount()
  const outcomes = { admitted: 0, 'admitted by the first version': 0, refused: 0 }
  let number = 0

  async function call(counters: RedisCounters, place: Place) {
    const lease = { ...place, leaseId: `req-${number++}` }
    const { refusal, nowMs } = await counters.admit(
      { ...lease, tokens: 10, leaseMs: 60_000 },
      limits,
    )
    if (refusal) {
      outcomes.refused++
      return refusal.metric
    }
    outcomes.admitted++
    if (counters === first) outcomes['admitted by the first version']++
    account.add(place, 1)
    // Much longer than a round trip on a busy machine: otherwise the limits would not be reached.
    await sleep(100 + random() * 150)
    if (random() < 0.2) await counters.renew([lease], 60_000)
    // Before Redis frees the slot: another call may get it before this one hears of it.
    account.add(place, -1)
    const spent = { reserved: 10, used: 5, admittedAtMs: nowMs }
    if (random() < 0.1) await counters.release([lease])
    else await counters.settle({ ...lease, ...spent })
    return null
  }

  /** Callers who always want another slot, so that the limits are reached all the time. */
  async function load(versions: readonly RedisCounters[], calls: number) {
    let left = calls
    const caller = async (index: number) => {
      while (left-- > 0) {
        const place = places[wanted[index % wanted.length]!]!
        const metric = await call(
          versions[Math.floor(index / wanted.length) % versions.length]!,
          place,
        )
        if (metric !== null) await sleep(5 + random() * 10)
      }
    }
    await Promise.all(Array.from({ length: 500 }, (_, index) => caller(index)))
  }

  await load([current], 2500)
  await load([first, current], 5000)
  await load([current], 2500)
  console.log(`seed ${seed}`, outcomes, Object.fromEntries(account.most))

  const { organization } = await current.read('acme')
  expect(organization).toMatchObject({
    requests_per_day: outcomes.admitted,
    concurrent_requests: 0,
  })
  expect(outcomes.admitted).toBeLessThanOrEqual(requestsMax)
  expect(outcomes['admitted by the first version']).toBeGreaterThan(200)
  expect(outcomes.refused).toBeGreaterThan(500)
  const reached = [
    ['organization', slotLimits.organization],
    ['a', slotLimits.project],
    ['1', slotLimits.key],
  ] as const
  for (const [name, limit] of reached) {
    expect(account.most.get(name)).toBeLessThanOrEqual(limit)
    expect(account.most.get(name)).toBeGreaterThan(limit / 2)
  }
  const [, leases, index] = organizationKeys('roll', 'acme')
  expect([
    await redis().send('', ['ZCARD', leases]),
    await redis().send('', ['ZCARD', index]),
  ]).toEqual([0, 0])
}, 120_000)
