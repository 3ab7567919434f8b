import type { AdminApiKey, ProjectApiKey } from '@gatehouse/contract/api-key'
import type { LimitValues } from '@gatehouse/contract/limits'

import { knownPermissions } from '#access/known-permissions.ts'
import { presentBudget } from '#access/limit-overrides/own-budget.ts'
import { presentLimits } from '#access/limit-overrides/own-limits.ts'
import { redact } from '#access/secret.ts'
import { toSeconds } from '#platform/clock.ts'

import type { KeyRow } from './key-store.ts'

/** The members that all keys share; times that are not set are absent, not null. */
function presentMembers(row: KeyRow) {
  return {
    id: row.id,
    name: row.name,
    redacted_value: redact(row.kind === 'admin' ? 'gate_adm_' : 'gate_prj_', row),
    created_at: toSeconds(row.created_at),
    ...(row.last_used_at && { last_used_at: toSeconds(row.last_used_at) }),
    ...(row.expires_at && { expires_at: toSeconds(row.expires_at) }),
    permissions: knownPermissions(row.permissions),
    managed_by: row.managed_by,
  }
}

const organizationOf = (row: KeyRow) => ({
  id: row.organization_id,
  type: 'organization' as const,
})

export const presentAdminKey = (row: KeyRow): AdminApiKey => ({
  object: 'organization.admin_api_key',
  ...presentMembers(row),
  owner: organizationOf(row),
})

/** `limits` are those that were set for this key. */
export const presentProjectKey = (row: KeyRow, limits: LimitValues): ProjectApiKey => ({
  object: 'organization.project.api_key',
  ...presentMembers(row),
  owner:
    row.member_id === null ? organizationOf(row) : { id: row.member_id, type: 'member' as const },
  limits: presentLimits(limits),
  monthly_budget: presentBudget(row),
  allowed_models: row.allowed_models,
})
