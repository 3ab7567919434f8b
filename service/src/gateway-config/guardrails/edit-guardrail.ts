import { isDeepStrictEqual } from 'node:util'

import { secretMask } from '@gatehouse/contract/exports/sink-config'
import type { GuardrailChange } from '@gatehouse/contract/policy-gateway/guardrails'

import { ApiError } from '#platform/api-error.ts'
import type { SecretBox } from '#platform/secrets.ts'

import type { GuardrailSavingDeps } from './save-guardrail.ts'
import { openGuardrailSecret, type SavedGuardrail, sealGuardrailSecret } from './saved-guardrail.ts'

/**
 * Otherwise an administrator who does not know the secret could have texts that are signed with it sent to another server, and
 * pass them on to the one that trusts the signature.
 */
export function requireSecretForOrigin(before: SavedGuardrail, { url, secret }: GuardrailChange) {
  if (url === undefined || (secret !== undefined && secret !== secretMask)) return
  if (URL.parse(url)?.origin === URL.parse(before.url)?.origin) return
  throw new ApiError(
    'missing_field',
    "'body.secret' is required, because the address is on another server: the stored secret is not used there.",
    { param: 'body.secret' },
  )
}

/** `before` itself if nothing would change. */
export function editGuardrail(
  before: SavedGuardrail,
  edit: GuardrailChange,
  { secretBox, now }: Pick<GuardrailSavingDeps, 'secretBox' | 'now'>,
): SavedGuardrail {
  const after: SavedGuardrail = {
    ...before,
    name: edit.name ?? before.name,
    url: edit.url ?? before.url,
    secret: editSecret(before, edit.secret, secretBox),
    enabled: edit.enabled ?? before.enabled,
    mode: edit.mode ?? before.mode,
    onError: edit.on_error ?? before.onError,
    deadlineMs: edit.deadline_ms ?? before.deadlineMs,
    projectIds: edit.project_ids === undefined ? before.projectIds : edit.project_ids,
  }
  return isDeepStrictEqual(after, { ...before }) ? before : { ...after, updatedAt: now() }
}

/** Sealing gives another value each time, so a secret that is stored already stays as it is. */
function editSecret(before: SavedGuardrail, secret: string | undefined, secretBox: SecretBox) {
  if (secret === undefined || secret === secretMask) return before.secret
  const isStored = openGuardrailSecret(before, secretBox) === secret
  return isStored ? before.secret : sealGuardrailSecret(before, secret, secretBox)
}
