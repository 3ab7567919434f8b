import type { BreakGlass } from '@gatehouse/contract/two-persons/break-glass'

import { asksForTwoPersons } from '#access/organizations/organization-store.ts'
import { breakGlass, nothingAsked, type Permit } from '#access/two-persons/require-proposal.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'
import type { Policy } from '#policies/policy.ts'

import { findApprovals } from './approval-store.ts'
import { findConsent } from './two-persons.ts'

type Context = { principal: Principal }

/** Throws unless another member has approved this revision, where the organization asks for two persons. The policy is locked. */
export async function requireApproval(
  tx: Tx,
  { principal }: Context,
  { policy, glass, isDraft }: { policy: Policy; glass: BreakGlass; isDraft: boolean },
): Promise<Permit> {
  const { organizationId } = principal
  if (!(await asksForTwoPersons(tx, organizationId))) return nothingAsked
  const approvals = await findApprovals(tx, { organizationId, policyId: policy.id })
  const consent = findConsent(approvals, {
    revision: policy.revision,
    draftedBy: isDraft ? policy.drafted_by : null,
    caller: principal,
  })
  if (consent.kind === 'given') return { facts: { approved_by: consent.by }, brokenGlass: null }
  if (glass.break_glass) return breakGlass(tx, principal, glass)
  if (consent.kind === 'outdated') throw approvalOutdated(policy.revision)
  throw approvalRequired()
}

const approvalRequired = () =>
  new ApiError(
    'approval_required',
    'Another member who may publish has to approve this revision first: POST …/approvals. A member cannot approve an own draft.',
  )

const approvalOutdated = (revision: number) =>
  new ApiError(
    'approval_outdated',
    `The policy has changed since it was approved: have revision ${revision} approved.`,
  )
