import type { RedisCounters } from '#limits/counters/redis-counters.ts'
import type { CallQuotas, QuotaReservation } from '#limits/quotas/quota.ts'
import { BoundedMap } from '#platform/bounded-map.ts'

import { sendAll } from './send-all.ts'

type Options = { redis: Pick<RedisCounters, 'forgetQuotas'> }
type Call = { organizationId: string; quotas?: CallQuotas | undefined }
type Unsure = {
  organizationId: string
  period: QuotaReservation['period']
  /** Counters, by their fields. */
  fields: BoundedMap<string, true>
  /** What calls reserved that have ended. Further ones expire by themselves. */
  names: BoundedMap<string, true>
}

const groupsMax = 100_000
const fieldsMax = 100_000
const namesMax = 10_000
const batchMax = 1000

/**
 * The counters of calls that were counted or ended without Redis. Redis does not add these calls up afterwards: it forgets
 * the counters, which are then loaded from the database, where every ended call is.
 */
export function createUnsureQuotas({ redis }: Options) {
  const unsure = new BoundedMap<string, Unsure>(groupsMax)

  function add({ organizationId, quotas }: Call, isEnded: boolean) {
    for (const { name, period, counters } of quotas?.reservations ?? []) {
      const key = `${organizationId} ${period.name}`
      const group = unsure.get(key) ?? {
        organizationId,
        period,
        fields: new BoundedMap<string, true>(fieldsMax),
        names: new BoundedMap<string, true>(namesMax),
      }
      for (const { field } of counters) group.fields.set(field, true)
      if (isEnded) group.names.set(name, true)
      unsure.set(key, group)
    }
  }

  return {
    isEmpty: () => unsure.size === 0,
    addRunning: (call: Call) => add(call, false),
    addEnded: (call: Call) => add(call, true),
    async forget() {
      // A copy: groups that are added meanwhile wait for the next time.
      await sendAll([...unsure], async ([key, group]) => {
        const names = [...group.names.keys()].slice(0, batchMax)
        const fields = [...group.fields.keys()].slice(0, batchMax)
        await redis.forgetQuotas({ ...group, names, fields })
        for (const name of names) group.names.delete(name)
        for (const field of fields) group.fields.delete(field)
        if (group.names.size + group.fields.size === 0) unsure.delete(key)
      })
    },
  }
}
export type UnsureQuotas = ReturnType<typeof createUnsureQuotas>
