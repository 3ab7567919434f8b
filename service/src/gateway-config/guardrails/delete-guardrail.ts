import { deleteGuardrail } from '@gatehouse/contract/policy-gateway/guardrails'
import type { FastifyInstance } from 'fastify'

import { lockOrganization } from '#access/organizations/organization-store.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { deleteGuardrailRow } from './guardrail-store.ts'
import { announceGuardrail, type GuardrailSavingDeps, requireGuardrail } from './save-guardrail.ts'

export function serveDeleteGuardrail(app: FastifyInstance, deps: GuardrailSavingDeps) {
  bindMutation(app, deleteGuardrail, deps, {
    async change(tx, { params }, context) {
      const { organizationId } = context.principal
      await lockOrganization(tx, organizationId)
      const before = await requireGuardrail(tx, organizationId, params.guardrail_id)
      await deleteGuardrailRow(tx, before)
      await announceGuardrail(tx, deps, context, { action: 'deleted', before, after: null })
      return {
        id: before.id,
        object: 'policy_gateway.guardrail.deleted' as const,
        deleted: true as const,
      }
    },
  })
}
