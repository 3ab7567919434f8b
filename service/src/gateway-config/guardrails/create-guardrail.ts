import { createGuardrail } from '@gatehouse/contract/policy-gateway/guardrails'
import type { FastifyInstance } from 'fastify'

import { lockOrganization } from '#access/organizations/organization-store.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'
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
    async change(tx, { body }, context) {
      const { organizationId } = context.principal
      const now = deps.now()
      const identity = { id: createId('grd', now), organizationId }
      const made: SavedGuardrail = {
        ...identity,
        name: body.name,
        url: body.url,
        secret: sealGuardrailSecret(identity, body.secret, deps.secretBox),
        enabled: body.enabled,
        mode: body.mode,
        onError: body.on_error,
        deadlineMs: body.deadline_ms,
        projectIds: body.project_ids,
        createdAt: now,
        updatedAt: now,
      }
      await lockOrganization(tx, organizationId)
      await requireProjects(tx, organizationId, body.project_ids ?? [])
      const others = await requireFreeName(tx, made)
      if (others >= guardrailsMax) throw limitReached('guardrails', guardrailsMax)
      await insertGuardrail(tx, made)
      await announceGuardrail(tx, deps, context, { action: 'created', before: null, after: made })
      return { guardrail: presentGuardrail(made) }
    },
  })
}
