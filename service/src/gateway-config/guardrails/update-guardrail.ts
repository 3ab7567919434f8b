import {
  type GuardrailChange,
  updateGuardrail,
} from '@gatehouse/contract/policy-gateway/guardrails'
import type { FastifyInstance } from 'fastify'

import type { WritingCaller } from '#access/managed/require-writable.ts'
import type { Backing } from '#access/two-persons/require-proposal.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import type { Tx } from '#platform/database.ts'
import { requireProjects } from '#policies/require-projects.ts'

import { requirePublicUrl } from './check-url.ts'
import { editGuardrail, requireSecretForOrigin } from './edit-guardrail.ts'
import { findGuardrail, updateGuardrailRow } from './guardrail-store.ts'
import { presentGuardrail } from './present-guardrail.ts'
import {
  announceGuardrail,
  type GuardrailSavingDeps,
  lockGuardrail,
  requireFreeName,
} from './save-guardrail.ts'
import type { SavedGuardrail } from './saved-guardrail.ts'

export function serveUpdateGuardrail(app: FastifyInstance, deps: GuardrailSavingDeps) {
  bindMutation(app, updateGuardrail, deps, {
    async prepare({ params, body }, { principal: { organizationId } }) {
      if (body.url === undefined) return
      const isThere = await findGuardrail(deps.db, organizationId, params.guardrail_id)
      if (isThere) await requirePublicUrl(body.url, deps) // otherwise `change` answers 404
    },
    async change(tx, { params, body }, context) {
      const after = await changeGuardrail(tx, deps, context, {
        id: params.guardrail_id,
        change: body,
        backing: { glass: body },
      })
      return { guardrail: presentGuardrail(after) }
    },
  })
}

export async function changeGuardrail(
  tx: Tx,
  deps: GuardrailSavingDeps,
  caller: WritingCaller,
  { id, change, backing }: { id: string; change: GuardrailChange; backing: Backing },
): Promise<SavedGuardrail> {
  const { organizationId } = caller.principal
  const before = await lockGuardrail(tx, deps, caller, id)
  requireSecretForOrigin(before, change)
  const after = editGuardrail(before, change, deps)
  if (after === before) return before
  await requireFreeName(tx, after)
  // Those that are stored may have been archived since, and stay until others are given.
  await requireProjects(tx, organizationId, change.project_ids ?? [])
  await updateGuardrailRow(tx, after)
  await announceGuardrail(tx, deps, caller, { action: 'updated', before, after, backing })
  return after
}
