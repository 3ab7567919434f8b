import {
  createGatewayProposal,
  type ProposalCreation,
} from '@gatehouse/contract/policy-gateway/proposals'
import type { FastifyInstance } from 'fastify'

import type { ManagedTable } from '#access/managed/managed-store.ts'
import { requireJudgement } from '#access/managed/require-writable.ts'
import { findOrganization, lockOrganization } from '#access/organizations/organization-store.ts'
import { callerOf } from '#audit/event.ts'
import { findConfig } from '#gateway-config/config/config-store.ts'
import {
  requireConsistent,
  requireRevision,
  type SavingDeps,
} from '#gateway-config/config/save-config.ts'
import { requirePublicUrl } from '#gateway-config/guardrails/check-url.ts'
import { requireSecretForOrigin } from '#gateway-config/guardrails/edit-guardrail.ts'
import {
  type GuardrailSavingDeps,
  requireGuardrail,
} from '#gateway-config/guardrails/save-guardrail.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'
import { createId } from '#platform/id.ts'
import { requireProjects } from '#policies/require-projects.ts'

import { countOpenProposals, insertProposal } from './proposal-store.ts'
import {
  presentProposal,
  type Proposal,
  proposalSealContext,
  type ProposedChange,
  splitSecret,
} from './proposal.ts'

export type ProposalDeps = SavingDeps & GuardrailSavingDeps

/** Proposals of an organization that can wait at a time. */
const openMax = 50

/** What can be checked before the approval is checked now, and again when the change is made. */
export function serveCreateGatewayProposal(app: FastifyInstance, deps: ProposalDeps) {
  bindMutation(app, createGatewayProposal, deps, {
    async prepare({ body }, { principal }) {
      if (body.config) requireConsistent(body.config, 'body.config')
      const url = body.new_guardrail?.url ?? body.guardrail?.change.url
      if (url !== undefined) await requirePublicUrl(url, deps)
      await deps.countSave(principal.organizationId)
    },
    async change(tx, { body }, context) {
      const { organizationId } = context.principal
      await lockOrganization(tx, organizationId)
      const { base, managed } = await findBase(tx, organizationId, body)
      const { set, takesOver } = context.writer
      if (managed) requireJudgement(context.writer, managed.table, managed.by)
      await requireProjects(tx, organizationId, projectsOf(body))
      if ((await countOpenProposals(tx, organizationId)) >= openMax) {
        throw limitReached('open proposals', openMax)
      }
      const { content, secret } = splitSecret(body)
      const now = deps.now()
      const identity = { id: createId('prop', now), organizationId }
      const sealed =
        secret && deps.secretBox.seal(Buffer.from(secret), proposalSealContext(identity))
      const made: Proposal = {
        ...identity,
        status: 'open',
        content,
        secret: sealed || null,
        base,
        comment: body.comment ?? null,
        set,
        takesOver,
        proposedBy: context.principal.credentialId,
        decidedBy: null,
        createdAt: now,
        decidedAt: null,
      }
      await insertProposal(tx, made)
      const after = presentProposal(made)
      const by = callerOf(context)
      await deps.announce(tx, { organizationId, by, action: 'created', before: null, after })
      return { proposal: after }
    },
  })
}

const projectsOf = ({ new_guardrail, guardrail }: ProposalCreation) =>
  new_guardrail?.project_ids ?? guardrail?.change.project_ids ?? []

/** What a change is made to. */
type Base = {
  /** As it is stored and compared. */
  base: string
  /** What the change is made to, and the set that manages it; undefined if it creates something. */
  managed?: { table: ManagedTable; by: string | null }
}

/**
 * What a change is made to: the revision of the configuration, or the time at which the guardrail last changed, and the set that
 * manages it. A proposal is approved only while that is still so, because its approver judges it by what it changes.
 */
export async function findBase(
  tx: Tx,
  organizationId: string,
  { config, restore, guardrail, deleted_guardrail, settings }: ProposedChange | ProposalCreation,
): Promise<Base> {
  if (restore !== undefined) await requireRevision(tx, organizationId, restore)
  if (config || restore !== undefined) {
    const saved = await findConfig(tx, organizationId)
    if (!saved) return { base: 'revision 0' }
    return baseOf(`revision ${saved.revision}`, 'gateway_config', saved.managedBy)
  }
  if (settings) {
    const organization = await findOrganization(tx, organizationId)
    return { base: `settings ${organization?.settings_revision}` }
  }
  const id = guardrail?.id ?? deleted_guardrail
  if (id === undefined) return { base: 'nothing' }
  const saved = await requireGuardrail(tx, organizationId, id)
  if (guardrail) requireSecretForOrigin(saved, guardrail.change)
  return baseOf(`guardrail at ${saved.updatedAt.toISOString()}`, 'guardrail', saved.managedBy)
}

const baseOf = (state: string, table: ManagedTable, by: string | null): Base => ({
  base: by === null ? state : `${state}, managed by ${by}`,
  managed: { table, by },
})
