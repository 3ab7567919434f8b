import { findOverrides } from '#access/limit-overrides/override-store.ts'
import type { Announce } from '#audit/announce.ts'
import type { Clock } from '#platform/clock.ts'
import type { Tx } from '#platform/database.ts'

import { revokeOwnKeys } from './own-key-store.ts'
import { presentProjectKey } from './present-key.ts'

type Owner = Parameters<typeof revokeOwnKeys>[1]

/**
 * Revokes the keys that a member has made for themself, for good: in one project that the member leaves, or in all. They
 * would be refused without it, because the lookup of a key reads the membership too; but a member who came back would
 * find them working again.
 */
export async function endOwnKeys(
  tx: Tx,
  owner: Owner,
  by: Parameters<Announce>[1]['by'],
  { now, announce }: { now: Clock; announce: Announce },
) {
  const { organizationId } = owner
  const revoked = await revokeOwnKeys(tx, owner, now())
  const ids = revoked.map(({ id }) => id)
  const limits = await findOverrides(tx, organizationId, 'key', ids)
  for (const key of revoked) {
    const before = presentProjectKey(key, limits.get(key.id) ?? {})
    const revision = { organizationId, by, action: 'deleted', before, after: null } as const
    // Each by itself: processes of the release before know nothing of members.
    await announce(tx, { ...revision, notifies: 'api_key' })
  }
}
