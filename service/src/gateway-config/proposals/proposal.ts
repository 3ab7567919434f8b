import { secretMask } from '@gatehouse/contract/exports/sink-config'
import type {
  GatewayProposal,
  ProposalCreation,
  ProposalStatus,
} from '@gatehouse/contract/policy-gateway/proposals'

import { toSecondText } from '#gateway-config/config/saved-config.ts'
import type { SecretBox } from '#platform/secrets.ts'

/** What is proposed, without the secret of a guardrail. */
export type ProposedChange = Pick<
  GatewayProposal,
  'config' | 'restore' | 'new_guardrail' | 'guardrail' | 'deleted_guardrail' | 'settings'
>

/** A change of the policy gateway that waits for another person, or was decided. */
export type Proposal = {
  readonly id: string
  readonly organizationId: string
  readonly status: ProposalStatus
  readonly content: ProposedChange
  /** The secret of a guardrail, sealed; null: none is proposed. */
  readonly secret: Buffer | null
  /** What the change was made to. */
  readonly base: string
  readonly comment: string | null
  /** The set for which the change is made; null: none. */
  readonly set: string | null
  readonly takesOver: boolean
  readonly proposedBy: string
  readonly decidedBy: string | null
  readonly createdAt: Date
  readonly decidedAt: Date | null
}

type Identity = Pick<Proposal, 'id' | 'organizationId'>

export const proposalSealContext = ({ id, organizationId }: Identity) =>
  `gateway_proposal/secret/${organizationId}/${id}`

/** Takes the secret out of what is proposed. */
export function splitSecret({ comment: _, ...change }: ProposalCreation): {
  content: ProposedChange
  secret: string | undefined
} {
  const { new_guardrail, guardrail } = change
  if (new_guardrail) {
    const masked = { ...new_guardrail, secret: secretMask } as const
    return { content: { new_guardrail: masked }, secret: new_guardrail.secret }
  }
  const secret = guardrail?.change.secret
  if (!guardrail || secret === undefined || secret === secretMask) {
    return { content: change as ProposedChange, secret: undefined }
  }
  const masked = { ...guardrail.change, secret: secretMask }
  return { content: { guardrail: { id: guardrail.id, change: masked } }, secret }
}

/** The proposed secret; undefined if there is none, or no master key opens it. */
export const openProposedSecret = (proposal: Proposal, secretBox: SecretBox) => {
  if (!proposal.secret) return undefined
  try {
    return secretBox.open(proposal.secret, proposalSealContext(proposal)).toString()
  } catch {
    return undefined
  }
}

/** As answers and audit events show it. */
export const presentProposal = (proposal: Proposal): GatewayProposal => ({
  id: proposal.id,
  object: 'policy_gateway.proposal',
  status: proposal.status,
  ...proposal.content,
  comment: proposal.comment,
  set: proposal.set,
  take_over: proposal.takesOver,
  proposed_by: proposal.proposedBy,
  decided_by: proposal.decidedBy,
  created_at: toSecondText(proposal.createdAt),
  decided_at: proposal.decidedAt && toSecondText(proposal.decidedAt),
})
