import { createGuardrail, type NewGuardrail } from '@gatehouse/contract/policy-gateway/guardrails'
import type { FastifyInstance } from 'fastify'

import type { WritingCaller } from '#access/managed/require-writable.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { Backing } from '#access/two-persons/require-proposal.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'
import { createId } from '#platform/id.ts'
import { requireProjects } from '#policies/require-projects.ts'

import { requirePublicUrl } from './check-url.ts'
import { insertGuardrail } from './guardrail-store.ts'
import { presentGuardrail } from './present-guardrail.ts'
import { announceGuardrail, type GuardrailSavingDeps, requireFreeName } from './save-guardrail.ts'
import { type SavedGuardrail, sealGuardrailSecret } from './saved-guardrail.ts'

/** Guardrails of an organization: each one is asked about every call in its scope. */
const guardrailsMax = 10

export function serveCreateGuardrail(app: FastifyInstance, deps: GuardrailSavingDeps) {
  bindMutation(app, createGuardrail, deps, {
    prepare: ({ body }) => requirePublicUrl(body.url, deps),
    change: async (tx, { body }, context) => {
      const made = await makeGuardrail(tx, deps, context, {
        wanted: body,
        backing: { glass: body },
      })
      return { guardrail: presentGuardrail(made) }
    },
  })
}

export async function makeGuardrail(
  tx: Tx,
  deps: GuardrailSavingDeps,
  caller: WritingCaller,
  { wanted, backing }: { wanted: NewGuardrail; backing: Backing },
): Promise<SavedGuardrail> {
  const { organizationId } = caller.principal
  const now = deps.now()
  const identity = { id: createId('grd', now), organizationId }
  const made: SavedGuardrail = {
    ...identity,
    name: wanted.name,
    url: wanted.url,
    secret: sealGuardrailSecret(identity, wanted.secret, deps.secretBox),
    enabled: wanted.enabled,
    mode: wanted.mode,
    onError: wanted.on_error,
    deadlineMs: wanted.deadline_ms,
    projectIds: wanted.project_ids,
    managedBy: caller.writer.set,
    createdAt: now,
    updatedAt: now,
  }
  await lockOrganization(tx, organizationId)
  await requireProjects(tx, organizationId, wanted.project_ids ?? [])
  const others = await requireFreeName(tx, made)
  if (others >= guardrailsMax) throw limitReached('guardrails', guardrailsMax)
  await insertGuardrail(tx, made)
  await announceGuardrail(tx, deps, caller, {
    action: 'created',
    before: null,
    after: made,
    backing,
  })
  return made
}
