import type { Member } from '@gatehouse/contract/members/member'

import { toSeconds } from '#platform/clock.ts'

import type { MemberRow } from './member-store.ts'

export const presentMember = (row: MemberRow): Member => ({
  id: row.id,
  object: 'organization.member',
  email: row.email,
  name: row.name,
  role: row.role,
  role_source: row.role_source,
  status: row.status,
  last_seen_at: row.last_seen_at && toSeconds(row.last_seen_at),
  managed_by: row.managed_by,
  created_at: toSeconds(row.created_at),
})
