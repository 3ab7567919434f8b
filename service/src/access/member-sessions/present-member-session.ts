import type { MemberSession } from '@gatehouse/contract/members/session'

import type { OpenSession } from '#access/sessions/open-session-store.ts'
import { toSeconds } from '#platform/clock.ts'

/** A session as its member sees it; `currentId` is that of the request's own session. */
export const presentMemberSession = (
  row: OpenSession,
  currentId: string | undefined,
): MemberSession => ({
  id: row.id,
  object: 'organization.session',
  member_id: row.member_id,
  form: row.form,
  method: row.method,
  created_at: toSeconds(row.created_at),
  last_seen_at: toSeconds(row.last_seen_at),
  expires_at: toSeconds(row.expires_at),
  is_current: row.id === currentId,
})
