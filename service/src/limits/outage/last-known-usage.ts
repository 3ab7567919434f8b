import type { KnownUsage } from '#limits/counters/absorb.ts'
import { scopeField } from '#limits/counters/counter-names.ts'
import { type Scope, type ScopeIds, scopes, type Verdict } from '#limits/limits.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'

const scopesMax = 50_000

/** Remembers the usage that Redis last reported for each scope, and how far its clock is ahead of ours. */
export function createLastKnownUsage({ now }: { now: Clock }) {
  const usages = new BoundedMap<string, KnownUsage>(scopesMax)
  let clockAheadMs = 0

  const nameOf = (organizationId: string, field: string) => `${organizationId} ${field}`

  return {
    /** The current time by the clock of Redis. */
    redisNow: () => new Date(now().getTime() + clockAheadMs),
    record(ids: ScopeIds, { nowMs, usage }: Verdict) {
      clockAheadMs = nowMs - now().getTime()
      for (const scope of scopes) {
        const name = nameOf(ids.organizationId, scopeField(scope, ids))
        usages.set(name, { atMs: nowMs, amounts: usage[scope] })
      }
    },
    /** The last known usage of each scope of a call; undefined where Redis has not reported any. */
    find: (ids: ScopeIds) =>
      Object.fromEntries(
        scopes.map((scope) => [
          scope,
          usages.get(nameOf(ids.organizationId, scopeField(scope, ids))),
        ]),
      ) as Record<Scope, KnownUsage | undefined>,
    /** Everything, by organization and then by field. */
    byOrganization(): Map<string, Map<string, KnownUsage>> {
      const organizations = new Map<string, Map<string, KnownUsage>>()
      for (const [name, usage] of usages) {
        const [organizationId = '', field = ''] = name.split(' ')
        const fields = organizations.get(organizationId) ?? new Map<string, KnownUsage>()
        organizations.set(organizationId, fields.set(field, usage))
      }
      return organizations
    },
  }
}
export type LastKnownUsage = ReturnType<typeof createLastKnownUsage>
