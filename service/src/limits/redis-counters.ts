import type { Redis, RedisArgument } from '#platform/redis.ts'

import type { Counters } from './counters.ts'
import { createFunctionLibrary } from './function-library.ts'
import type { Lease, Limits } from './limits.ts'
import { leaseName } from './names.ts'
import { packCounters, packKnown, packLimits, unpackCounters, unpackVerdict } from './packing.ts'
import { createWindows, type HandOver, overview } from './rolling-window.ts'

type Options = {
  redis: Pick<Redis, 'send' | 'sendToPrimaries'>
  /** Before every key: deployments and kinds of calls that share a Redis are kept apart by it. */
  prefix: string
  /** Time for tests; the server's own otherwise. */
  nowMs?: () => number
}

export type RedisCounters = Counters & {
  load(): Promise<void>
  /** Holds slots of one organization longer; returns how many were still held. */
  renew(leases: readonly Lease[], leaseMs: number): Promise<number>
  /** Frees slots of one organization, whatever they have used. */
  release(leases: readonly Lease[]): Promise<void>
  /** Adds what this process counted by itself while Redis was away. */
  absorb(organizationId: string, handOvers: readonly HandOver[]): Promise<void>
  /** Removes what was counted for a project or key that is gone. */
  forget(organizationId: string, field: string): Promise<void>
}

/** Counts in Redis, for all processes: one round trip for one decision. */
export function createRedisCounters({ redis, prefix, nowMs }: Options): RedisCounters {
  const library = createFunctionLibrary(redis)
  const packed = new WeakMap<Limits, Buffer>()
  const time = () => String(nowMs?.() ?? 0)
  // The organization is the hash tag: a cluster keeps all of it in one place.
  const keysOf = (organizationId: string) =>
    [`${prefix}:{${organizationId}}:c`, `${prefix}:{${organizationId}}:l`] as const

  function packedOnce(limits: Limits): Buffer {
    const known = packed.get(limits) ?? packLimits(limits)
    packed.set(limits, known)
    return known
  }

  return {
    load: library.load,
    async admit({ organizationId, projectId, keyId, tokens, leaseId, leaseMs }, limits) {
      const answer = await library.call('admit', keysOf(organizationId), [
        ...[time(), String(tokens), leaseId, String(leaseMs), `p${projectId}`, `k${keyId}`],
        packedOnce(limits),
      ])
      return unpackVerdict(answer as Buffer)
    },
    async settle({ organizationId, projectId, keyId, leaseId, reserved, used, admittedAtMs }) {
      const answer = await library.call('settle', keysOf(organizationId), [
        ...[time(), leaseId, String(reserved), String(used), String(admittedAtMs)],
        ...[`p${projectId}`, `k${keyId}`],
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
      const [, key] = keysOf(first.organizationId)
      await redis.send(key, ['ZREM', key, ...leases.map(leaseName)])
    },
    async absorb(organizationId, handOvers) {
      const args: RedisArgument[] = handOvers.flatMap(({ field, counters, known }) => [
        ...[field, packCounters(counters), packKnown(known)],
      ])
      if (args.length > 0) await library.call('absorb', keysOf(organizationId), [time(), ...args])
    },
    async forget(organizationId, field) {
      const [counters] = keysOf(organizationId)
      await redis.send(counters, ['HDEL', counters, field])
    },
    read: (organizationId) => readAll(redis, keysOf(organizationId), nowMs),
  }
}

/** Reads everything of an organization; its counters are looked at here, with the eyes of the model. */
async function readAll(
  redis: Options['redis'],
  [counters, leases]: readonly [string, string],
  nowMs: Options['nowMs'],
) {
  const fields = toPairs(await redis.send(counters, ['HGETALL', counters]))
  const scored = toPairs(await redis.send(leases, ['ZRANGE', leases, '0', '-1', 'WITHSCORES']))
  const [seconds = '0', micros = '0'] = ((await redis.send(counters, ['TIME'])) as Buffer[]).map(
    String,
  )
  const state = createWindows()
  for (const [field, value] of fields) state.counters.set(String(field), unpackCounters(value))
  for (const [name, endsAtMs] of scored) state.leases.set(String(name), Number(String(endsAtMs)))
  return overview(state, nowMs?.() ?? Number(seconds) * 1000 + Math.floor(Number(micros) / 1000))
}

function toPairs(answer: unknown): [Buffer, Buffer][] {
  const flat = answer as Buffer[]
  return Array.from({ length: flat.length / 2 }, (_, index) => [
    flat[index * 2] as Buffer,
    flat[index * 2 + 1] as Buffer,
  ])
}
