import type { LimitedCall, LimitSettlement } from '#limits/limits.ts'
import type { CallQuotas, QuotaReservation } from '#limits/quotas/quota.ts'
import type { RedisArgument } from '#platform/redis.ts'

import { quotaKeys } from './counter-names.ts'
import type { createFunctionLibrary } from './function-library.ts'
import { packKnown, packQuotaLimits } from './quota-packing.ts'

// The part of redis-counters.ts that is about quotas. The order of arguments is described in quotas.lua.

type Options = {
  library: Pick<ReturnType<typeof createFunctionLibrary>, 'call'>
  prefix: string
  time: () => string
}

/** What calls of one organization reserve in one period. */
export type QuotasOfPeriod = {
  organizationId: string
  period: QuotaReservation['period']
  names: readonly string[]
}

type Keys = readonly [string, ...string[]]
type Call = { organizationId: string; quotas?: CallQuotas | undefined }

export function createRedisQuotas({ library, prefix, time }: Options) {
  const keysOf = (organizationId: string, { name }: QuotaReservation['period']) =>
    quotaKeys(prefix, organizationId, name)
  return {
    /** The keys of a call, with those of its periods. */
    addKeys(keys: Keys, { organizationId, quotas }: Call): Keys {
      if (!quotas) return keys
      return [
        ...keys,
        ...quotas.reservations.flatMap((each) => keysOf(organizationId, each.period)),
      ]
    },
    async renew({ organizationId, period, names }: QuotasOfPeriod, leaseMs: number) {
      const args = [time(), String(leaseMs), String(period.endsAtMs), ...names]
      await library.call('renew_quotas', keysOf(organizationId, period), args)
    },
    async forget(of: QuotasOfPeriod & { fields: readonly string[] }) {
      const { organizationId, period, names, fields } = of
      const args = [String(names.length), ...names, ...fields]
      await library.call('forget_quotas', keysOf(organizationId, period), args)
    },
  }
}

export function toAdmitArguments({ quotas }: LimitedCall): RedisArgument[] {
  if (!quotas) return []
  return [
    String(quotas.known?.askedAtMs ?? 0),
    ...quotas.reservations.flatMap((each) => [
      each.name,
      String(each.period.endsAtMs),
      packQuotaLimits(each),
      packKnown(each, quotas),
    ]),
  ]
}

export function toSettleArguments({ quotas, usedCredits = 0 }: LimitSettlement): string[] {
  if (!quotas) return []
  return [String(usedCredits), ...quotas.reservations.map(({ name }) => name)]
}
