import type { Lease, Limits } from '#limits/limits.ts'
import type { Redis, RedisArgument } from '#platform/redis.ts'

import type { ScopeCounts } from './absorb.ts'
import { keyField, leaseName, organizationKeys, projectField } from './counter-names.ts'
import type { Counters } from './counters.ts'
import { createFunctionLibrary } from './function-library.ts'
import { createOrganizationCounts } from './organization-counts.ts'
import {
  packCounters,
  packLastKnown,
  packLimits,
  unpackCounters,
  unpackVerdict,
} from './packing.ts'
import { organizationUsage } from './usage.ts'

type Options = {
  redis: Pick<Redis, 'send' | 'sendToPrimaries'>
  /** The beginning of every key, which keeps deployments and kinds of calls apart. */
  prefix: string
  /** The time in tests; otherwise the server's clock is used. */
  nowMs?: () => number
}

export type RedisCounters = Counters & {
  load(): Promise<void>
  /** Extends leases of one organization; returns how many were still held. */
  renew(leases: readonly Lease[], leaseMs: number): Promise<number>
  /** Frees slots of one organization without settling their tokens. */
  release(leases: readonly Lease[]): Promise<void>
  /** Adds what a process counted while Redis was away. */
  absorb(organizationId: string, scopes: readonly ScopeCounts[]): Promise<void>
  /** Removes the counters of a deleted project or key. */
  forget(organizationId: string, field: string): Promise<void>
}

/** Counts in Redis for all processes, with one round trip for each decision. */
export function createRedisCounters({ redis, prefix, nowMs }: Options): RedisCounters {
  const library = createFunctionLibrary(redis)
  const packOnce = createLimitsPacker()
  const time = () => String(nowMs?.() ?? 0)
  const keysOf = (organizationId: string) => organizationKeys(prefix, organizationId)

  return {
    load: library.load,
    async admit({ organizationId, projectId, keyId, tokens, leaseId, leaseMs }, limits) {
      const answer = await library.call('admit', keysOf(organizationId), [
        time(),
        String(tokens),
        leaseId,
        String(leaseMs),
        projectField(projectId),
        keyField(keyId),
        packOnce(limits),
      ])
      return unpackVerdict(answer as Buffer)
    },
    async settle({ organizationId, projectId, keyId, leaseId, reserved, used, admittedAtMs }) {
      const answer = await library.call('settle', keysOf(organizationId), [
        time(),
        leaseId,
        String(reserved),
        String(used),
        String(admittedAtMs),
        projectField(projectId),
        keyField(keyId),
      ])
      return answer === 1
    },
    async renew(leases, leaseMs) {
      const [first] = leases
      if (!first) return 0
      const args = [time(), String(leaseMs), ...leases.map(leaseName)]
      return Number(await library.call('renew', keysOf(first.organizationId), args))
    },
    async release(leases) {
      const [first] = leases
      if (!first) return
      await library.call('release', keysOf(first.organizationId), leases.map(leaseName))
    },
    async absorb(organizationId, scopes) {
      const args: RedisArgument[] = scopes.flatMap(({ field, counters, lastKnown }) => [
        field,
        packCounters(counters),
        packLastKnown(lastKnown),
      ])
      if (args.length > 0) await library.call('absorb', keysOf(organizationId), [time(), ...args])
    },
    async forget(organizationId, field) {
      const [key] = keysOf(organizationId)
      await redis.send(key, ['HDEL', key, field])
    },
    read: (organizationId) => readUsage(redis, keysOf(organizationId), nowMs),
  }
}

async function readUsage(
  redis: Options['redis'],
  keys: readonly [counters: string, leases: string, index: string],
  nowMs: Options['nowMs'],
) {
  const counts = await readCounts(redis, keys)
  return organizationUsage(counts, nowMs?.() ?? (await readTime(redis, keys[0])))
}

/** Limits are one object for each tier and each cached credential with limits of its own; each is packed once. */
function createLimitsPacker() {
  const packed = new WeakMap<Limits, Buffer>()
  return (limits: Limits): Buffer => {
    const bytes = packed.get(limits) ?? packLimits(limits)
    packed.set(limits, bytes)
    return bytes
  }
}

async function readCounts(
  redis: Options['redis'],
  [countersKey, leasesKey]: readonly [string, string, string],
) {
  const fields = toPairs(await redis.send(countersKey, ['HGETALL', countersKey]))
  const scored = toPairs(
    await redis.send(leasesKey, ['ZRANGE', leasesKey, '0', '-1', 'WITHSCORES']),
  )
  const counts = createOrganizationCounts()
  for (const [field, packed] of fields) counts.counters.set(String(field), unpackCounters(packed))
  for (const [name, endsAtMs] of scored) counts.leases.set(String(name), Number(String(endsAtMs)))
  return counts
}

async function readTime(redis: Options['redis'], key: string): Promise<number> {
  const [seconds, micros] = ((await redis.send(key, ['TIME'])) as Buffer[]).map((each) =>
    Number(String(each)),
  )
  return (seconds ?? 0) * 1000 + Math.floor((micros ?? 0) / 1000)
}

function toPairs(answer: unknown): [Buffer, Buffer][] {
  const flat = answer as Buffer[]
  return Array.from({ length: flat.length / 2 }, (_, index) => [
    flat[index * 2] as Buffer,
    flat[index * 2 + 1] as Buffer,
  ])
}
