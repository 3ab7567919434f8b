import { deleteGuardrail } from '@gatehouse/contract/policy-gateway/guardrails'
import type { FastifyInstance } from 'fastify'

import type { WritingCaller } from '#access/managed/require-writable.ts'
import type { Backing } from '#access/two-persons/require-proposal.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import type { Tx } from '#platform/database.ts'

import { deleteGuardrailRow } from './guardrail-store.ts'
import { announceGuardrail, type GuardrailSavingDeps, lockGuardrail } from './save-guardrail.ts'

export function serveDeleteGuardrail(app: FastifyInstance, deps: GuardrailSavingDeps) {
  bindMutation(app, deleteGuardrail, deps, {
    async change(tx, { params: { guardrail_id: id }, query }, context) {
      await removeGuardrail(tx, deps, context, { id, backing: { glass: query } })
      return { id, object: 'policy_gateway.guardrail.deleted' as const, deleted: true as const }
    },
  })
}

export async function removeGuardrail(
  tx: Tx,
  deps: GuardrailSavingDeps,
  caller: WritingCaller,
  { id, backing }: { id: string; backing: Backing },
) {
  const before = await lockGuardrail(tx, deps, caller, id)
  await deleteGuardrailRow(tx, before)
  await announceGuardrail(tx, deps, caller, { action: 'deleted', before, after: null, backing })
}
