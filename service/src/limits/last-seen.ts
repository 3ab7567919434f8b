import type { Clock } from '#platform/clock.ts'

import { type Amounts, type Attempt, scopes, type Verdict } from './limits.ts'
import { fieldOf } from './names.ts'
import type { Known } from './share.ts'

type Seen = { atMs: number; amounts: Amounts }
type Place = Pick<Attempt, 'organizationId' | 'projectId' | 'keyId'>

const placesMax = 50_000

/** What Redis last said about each scope, and how its clock differs from ours. */
export function createLastSeen({ now }: { now: Clock }) {
  const seen = new Map<string, Seen>()
  let aheadMs = 0

  const nameOf = (organizationId: string, field: string) => `${organizationId} ${field}`

  return {
    /** The time as Redis would tell it. */
    clock: () => new Date(now().getTime() + aheadMs),
    note(place: Place, { nowMs, usage }: Verdict) {
      aheadMs = nowMs - now().getTime()
      for (const scope of scopes) {
        const name = nameOf(place.organizationId, fieldOf(scope, place))
        seen.delete(name) // so that the least recently seen falls out
        seen.set(name, { atMs: nowMs, amounts: usage[scope] })
        const [oldest] = seen.keys()
        if (seen.size > placesMax && oldest !== undefined) seen.delete(oldest)
      }
    },
    /** Everything that was seen, by organization and field. */
    all(): Map<string, Map<string, Seen>> {
      const byOrganization = new Map<string, Map<string, Seen>>()
      for (const [name, each] of seen) {
        const [organizationId = '', field = ''] = name.split(' ')
        const fields = byOrganization.get(organizationId) ?? new Map<string, Seen>()
        byOrganization.set(organizationId, fields.set(field, each))
      }
      return byOrganization
    },
    of: (place: Place): Known =>
      Object.fromEntries(
        scopes.map((scope) => [
          scope,
          seen.get(nameOf(place.organizationId, fieldOf(scope, place))),
        ]),
      ),
  }
}
export type LastSeen = ReturnType<typeof createLastSeen>
