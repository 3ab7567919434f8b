import { secretMask } from '@gatehouse/contract/exports/sink-config'
import type { Guardrail } from '@gatehouse/contract/policy-gateway/guardrails'

import { toSecondText } from '#gateway-config/config/saved-config.ts'

import type { SavedGuardrail } from './saved-guardrail.ts'

/** As answers and audit events show it: never its secret. */
export const presentGuardrail = (saved: SavedGuardrail): Guardrail => ({
  id: saved.id,
  object: 'policy_gateway.guardrail',
  name: saved.name,
  url: saved.url,
  secret: secretMask,
  enabled: saved.enabled,
  mode: saved.mode,
  on_error: saved.onError,
  deadline_ms: saved.deadlineMs,
  project_ids: saved.projectIds && [...saved.projectIds],
  managed_by: saved.managedBy,
  created_at: toSecondText(saved.createdAt),
  updated_at: toSecondText(saved.updatedAt),
})
