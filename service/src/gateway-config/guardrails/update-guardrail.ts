import { isDeepStrictEqual } from 'node:util'

import { secretMask } from '@gatehouse/contract/exports/sink-config'
import { type GuardrailEdit, updateGuardrail } from '@gatehouse/contract/policy-gateway/guardrails'
import type { FastifyInstance } from 'fastify'

import { lockOrganization } from '#access/organizations/organization-store.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError } from '#platform/api-error.ts'
import type { SecretBox } from '#platform/secrets.ts'
import { requireProjects } from '#policies/require-projects.ts'

import { requirePublicUrl } from './check-url.ts'
import { findGuardrail, updateGuardrailRow } from './guardrail-store.ts'
import { presentGuardrail } from './present-guardrail.ts'
import {
  announceGuardrail,
  type GuardrailSavingDeps,
  requireFreeName,
  requireGuardrail,
} from './save-guardrail.ts'
import { openGuardrailSecret, type SavedGuardrail, sealGuardrailSecret } from './saved-guardrail.ts'

export function serveUpdateGuardrail(app: FastifyInstance, deps: GuardrailSavingDeps) {
  bindMutation(app, updateGuardrail, deps, {
    async prepare({ params, body }, { principal: { organizationId } }) {
      if (body.url === undefined) return
      const isThere = await findGuardrail(deps.db, organizationId, params.guardrail_id)
      if (isThere) await requirePublicUrl(body.url, deps) // otherwise `change` answers 404
    },
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      await lockOrganization(tx, organizationId)
      const before = await requireGuardrail(tx, organizationId, params.guardrail_id)
      requireSecretForOrigin(before, body)
      const after = editGuardrail(before, body, deps)
      if (after === before) return { guardrail: presentGuardrail(before) }
      await requireFreeName(tx, after)
      // Those that are stored may have been archived since, and stay until others are given.
      await requireProjects(tx, organizationId, body.project_ids ?? [])
      await updateGuardrailRow(tx, after)
      await announceGuardrail(tx, deps, context, { action: 'updated', before, after })
      return { guardrail: presentGuardrail(after) }
    },
  })
}

/**
 * Otherwise an administrator who does not know the secret could have texts that are signed with it sent to another server, and
 * pass them on to the one that trusts the signature.
 */
function requireSecretForOrigin(before: SavedGuardrail, { url, secret }: GuardrailEdit) {
  if (url === undefined || (secret !== undefined && secret !== secretMask)) return
  if (URL.parse(url)?.origin === URL.parse(before.url)?.origin) return
  throw new ApiError(
    'missing_field',
    "'body.secret' is required, because the address is on another server: the stored secret is not used there.",
    { param: 'body.secret' },
  )
}

/** `before` itself if nothing would change. */
function editGuardrail(
  before: SavedGuardrail,
  edit: GuardrailEdit,
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
