import { findOverride } from '#access/limit-overrides/override-store.ts'
import { requireWritable, type WritingCaller } from '#access/managed/require-writable.ts'
import type { Announce } from '#audit/announce.ts'
import type { Tx } from '#platform/database.ts'

import type { KeyRow } from './key-store.ts'
import { presentProjectKey } from './present-key.ts'

/** The key of a project, which the caller has locked, if the request may change it for its set; else 409. */
export async function requireWritableKey(
  tx: Tx,
  deps: { announce: Announce },
  caller: WritingCaller,
  key: KeyRow,
): Promise<KeyRow> {
  const { organization_id: organizationId, id } = key
  const managed_by = await requireWritable(tx, deps, caller, {
    table: 'api_key',
    id,
    managedBy: key.managed_by,
    async present(set) {
      const limits = await findOverride(tx, { organizationId, scope: 'key', scopeId: id })
      return presentProjectKey({ ...key, managed_by: set }, limits)
    },
  })
  return { ...key, managed_by }
}
