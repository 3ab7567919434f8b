import type { Permission } from '@gatehouse/contract/permission'
import {
  approveGatewayProposal,
  withdrawGatewayProposal,
} from '@gatehouse/contract/policy-gateway/proposals'
import { rolePermissions } from '@gatehouse/contract/role'
import type { FastifyInstance } from 'fastify'

import type { WritingCaller } from '#access/managed/require-writable.ts'
import { findMember } from '#access/members/member-store.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import { changeSettings } from '#access/settings/update-organization-settings.ts'
import { permissionDenied } from '#access/unauthorized.ts'
import { callerOf } from '#audit/event.ts'
import { restoreConfig, saveConfig } from '#gateway-config/config/save-config.ts'
import { requirePublicUrl } from '#gateway-config/guardrails/check-url.ts'
import { makeGuardrail } from '#gateway-config/guardrails/create-guardrail.ts'
import { removeGuardrail } from '#gateway-config/guardrails/delete-guardrail.ts'
import type { Caller } from '#gateway-config/guardrails/save-guardrail.ts'
import { changeGuardrail } from '#gateway-config/guardrails/update-guardrail.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { ObjectWriter } from '#http/mutation/writer.ts'
import { ApiError, notFound } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'
import { requirePerson } from '#policies/approvals/approve-policy.ts'

import { findProposal, saveDecision } from './proposal-store.ts'
import { openProposedSecret, presentProposal, type Proposal } from './proposal.ts'
import { findBase, type ProposalDeps } from './propose.ts'

/** Makes the proposed change, in the name of the member who approves it. */
export function serveApproveGatewayProposal(app: FastifyInstance, deps: ProposalDeps) {
  bindMutation(app, approveGatewayProposal, deps, {
    async prepare({ params }, { principal }) {
      requirePerson(principal)
      const found = await findProposal(deps.db, principal.organizationId, params.proposal_id)
      const url = found?.content.new_guardrail?.url ?? found?.content.guardrail?.change.url
      if (url !== undefined) await requirePublicUrl(url, deps)
    },
    async change(tx, { params }, context) {
      const proposal = await lockOpen(tx, context, params.proposal_id)
      const { id } = requirePerson(context.principal)
      if (proposal.proposedBy === id) throw ownProposal()
      await requireTwoPersons(tx, proposal, id)
      await requireSameBase(tx, proposal)
      // The change is made for the set that proposed it; who approves it may be a person without one.
      const writer = new ObjectWriter('change', proposal)
      await makeChange(tx, deps, { ...context, writer }, proposal)
      return conclude(tx, deps, context, { proposal, status: 'approved' })
    },
  })
}

export function serveWithdrawGatewayProposal(app: FastifyInstance, deps: ProposalDeps) {
  bindMutation(app, withdrawGatewayProposal, deps, {
    async change(tx, { params }, context) {
      const proposal = await lockOpen(tx, context, params.proposal_id)
      return conclude(tx, deps, context, { proposal, status: 'withdrawn' })
    },
  })
}

/** With the organization locked, a proposal is decided once. */
async function lockOpen(tx: Tx, { principal }: Caller, id: string): Promise<Proposal> {
  await lockOrganization(tx, principal.organizationId)
  const proposal = await findProposal(tx, principal.organizationId, id)
  if (proposal?.status !== 'open') throw notFound('proposal')
  return proposal
}

/**
 * Both are read here, because for some seconds a session has the role that its member had before. A proposer who has left is none any
 * more: such a person could join again as another member, and approve what was proposed before. Keys belong to no person.
 */
async function requireTwoPersons(
  tx: Tx,
  { organizationId, proposedBy }: Proposal,
  approver: string,
) {
  const mayNow = async (memberId: string, permission: Permission) => {
    const member = await findMember(tx, organizationId, memberId)
    return member?.status === 'active' && rolePermissions[member.role].includes(permission)
  }
  if (!(await mayNow(approver, 'policies.publish'))) throw permissionDenied('policies.publish')
  const isOfPerson = proposedBy.startsWith('mem_')
  if (isOfPerson && !(await mayNow(proposedBy, 'policy_gateway.write'))) throw proposerGone()
}

async function requireSameBase(tx: Tx, { organizationId, content, base }: Proposal) {
  const found = await findBase(tx, organizationId, content).catch((error: unknown) => {
    // What it changes, or restores, has been removed.
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  })
  if (found?.base !== base) throw proposalOutdated()
}

async function makeChange(tx: Tx, deps: ProposalDeps, context: WritingCaller, proposal: Proposal) {
  const { config, restore, deleted_guardrail, settings } = proposal.content
  const { new_guardrail, guardrail } = proposal.content
  const facts = { proposal_id: proposal.id, proposed_by: proposal.proposedBy }
  const backing = { permit: { facts, brokenGlass: null } }
  if (config) return saveConfig(tx, deps, context, { config, ifMatch: undefined, backing })
  if (restore !== undefined) {
    return restoreConfig(tx, deps, context, { historyId: restore, ifMatch: undefined, backing })
  }
  if (deleted_guardrail !== undefined) {
    return removeGuardrail(tx, deps, context, { id: deleted_guardrail, backing })
  }
  if (settings) {
    return changeSettings(tx, deps, context, { edit: settings, ifMatch: undefined, backing })
  }
  const secret = openProposedSecret(proposal, deps.secretBox)
  if (proposal.secret && secret === undefined) throw proposalOutdated()
  if (new_guardrail) {
    const wanted = { ...new_guardrail, secret: secret ?? new_guardrail.secret }
    return makeGuardrail(tx, deps, context, { wanted, backing })
  }
  if (!guardrail) throw new Error('a proposal proposes nothing')
  const change = secret === undefined ? guardrail.change : { ...guardrail.change, secret }
  return changeGuardrail(tx, deps, context, { id: guardrail.id, change, backing })
}

async function conclude(
  tx: Tx,
  deps: ProposalDeps,
  context: Caller,
  { proposal, status }: { proposal: Proposal; status: 'approved' | 'withdrawn' },
) {
  const { credentialId } = context.principal
  const decided: Proposal = {
    ...proposal,
    status,
    secret: null,
    decidedBy: credentialId,
    decidedAt: deps.now(),
  }
  await saveDecision(tx, decided)
  const after = presentProposal(decided)
  await deps.announce(tx, {
    organizationId: proposal.organizationId,
    by: callerOf(context),
    action: 'updated',
    before: presentProposal(proposal),
    after,
  })
  return { proposal: after }
}

const ownProposal = () =>
  permissionDenied('policies.publish', 'You proposed this yourself; another member approves it.')

const proposerGone = () =>
  new ApiError(
    'approval_outdated',
    'The member who proposed this may not propose it any more: withdraw it, and propose the change again.',
  )

const proposalOutdated = () =>
  new ApiError(
    'approval_outdated',
    'What the proposal changes is not as it was any more: withdraw it, and propose the change again.',
  )
