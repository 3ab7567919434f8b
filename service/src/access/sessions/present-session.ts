import { toSeconds } from '#platform/clock.ts'

import type { SessionRow } from './session-store.ts'

/** A session as its member and the audit log see it, so without its secret. */
export const presentSession = (row: SessionRow) => ({
  id: row.id,
  object: 'organization.session' as const,
  member_id: row.member_id,
  key_id: row.key_id,
  form: row.form,
  method: row.method,
  created_at: toSeconds(row.created_at),
  last_seen_at: toSeconds(row.last_seen_at),
  expires_at: toSeconds(row.expires_at),
})
