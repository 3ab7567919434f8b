import type { Lease, LimitedCall, Limits, LimitSettlement } from '#limits/limits.ts'
import type { RedisArgument } from '#platform/redis.ts'

import type { ScopeCounts } from './absorb.ts'
import { keyField, leaseName, organizationKeys, projectField } from './counter-names.ts'
import type { Counters } from './counters.ts'
import { createFunctionLibrary, type RedisCommands } from './function-library.ts'
import { createOrganizationCounts } from './organization-counts.ts'
import {
  packCounters,
  packLastKnown,
  packLimits,
  unpackCounters,
  unpackVerdict,
} from './packing.ts'
import { unpackQuotas, unpackSettled } from './quota-packing.ts'
import {
  createRedisQuotas,
  type QuotasOfPeriod,
  toAdmitArguments,
  toSettleArguments,
} from './redis-quotas.ts'
import { organizationUsage } from './usage.ts'

type Options = {
  redis: RedisCommands
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
  /** Extends what running calls of one organization reserve in one period. */
  renewQuotas(of: QuotasOfPeriod, leaseMs: number): Promise<void>
  /** Removes reservations of one organization and period, and counters, which are then loaded again. */
  forgetQuotas(of: QuotasOfPeriod & { fields: readonly string[] }): Promise<void>
  /** Removes the counters of a deleted project or key. */
  forget(organizationId: string, field: string): Promise<void>
}

/** Counts in Redis for all processes, with one round trip for each decision. */
export function createRedisCounters({ redis, prefix, nowMs }: Options): RedisCounters {
  const library = createFunctionLibrary(redis)
  const packOnce = createLimitsPacker()
  const time = () => String(nowMs?.() ?? 0)
  const keysOf = (organizationId: string) => organizationKeys(prefix, organizationId)
  const quotas = createRedisQuotas({ library, prefix, time })

  return {
    load: library.load,
    async admit(call, limits) {
      const keys = quotas.addKeys(keysOf(call.organizationId), call)
      const args = [time(), ...admitArguments(call, packOnce(limits))]
      const answer = await library.call('admit', keys, args)
      const verdict = unpackVerdict(answer as Buffer)
      const ofQuotas = call.quotas && unpackQuotas(answer as Buffer, call.quotas)
      return ofQuotas ? { ...verdict, quotas: ofQuotas } : verdict
    },
    async settle(settlement) {
      const keys = quotas.addKeys(keysOf(settlement.organizationId), settlement)
      const answer = await library.call('settle', keys, [time(), ...settleArguments(settlement)])
      return settlement.quotas
        ? unpackSettled(answer as Buffer, settlement.quotas)
        : { wasHeld: answer === 1, credits: [] }
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
    renewQuotas: quotas.renew,
    forgetQuotas: quotas.forget,
    async forget(organizationId, field) {
      const [key] = keysOf(organizationId)
      await redis.send(key, ['HDEL', key, field])
    },
    read: (organizationId) => readUsage(redis, keysOf(organizationId), nowMs),
  }
}

const admitArguments = (call: LimitedCall, packedLimits: Buffer): RedisArgument[] => [
  String(call.tokens),
  call.leaseId,
  String(call.leaseMs),
  projectField(call.projectId),
  keyField(call.keyId),
  packedLimits,
  ...toAdmitArguments(call),
  ...windowArgument(call),
]

const settleArguments = (settlement: LimitSettlement): string[] => [
  settlement.leaseId,
  String(settlement.reserved),
  String(settlement.used),
  String(settlement.admittedAtMs),
  projectField(settlement.projectId),
  keyField(settlement.keyId),
  ...toSettleArguments(settlement),
  ...windowArgument(settlement),
]

const windowArgument = ({ countsInMinuteOnly }: Pick<LimitedCall, 'countsInMinuteOnly'>) =>
  countsInMinuteOnly ? ['minute'] : []

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
