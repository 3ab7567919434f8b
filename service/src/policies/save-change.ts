import { type Policy as PolicyOnWire } from '@gatehouse/contract/policy'
import { revisionMax } from '@gatehouse/contract/revision'

import { callerOf, type EventHeader, type RevisionAction } from '#audit/event.ts'
import type { Principal } from '#http/principal.ts'
import type { Tx } from '#platform/database.ts'

import type { PolicyDeps } from './deps.ts'
import { isInForce } from './policy-state.ts'
import { savePolicy } from './policy-store.ts'
import type { Policy, Version } from './policy.ts'
import { presentPolicy } from './present-policy.ts'
import { noMoreRevisions } from './refusals.ts'
import { enterEpoch } from './rollout/epoch-store.ts'

/** A policy and its current version. */
type PolicyWithVersion = { policy: Policy; current: Version | undefined }

type Change = {
  action: RevisionAction
  before: PolicyWithVersion
  after: PolicyWithVersion
  facts?: EventHeader
}

type Context = { principal: Principal; requestId: string }

export const versionInForce = (policy: Policy) =>
  isInForce(policy.state) ? policy.current_version : null

/** Saves a changed policy, announces the change, and begins an epoch if another version is now in force. */
export async function saveChange(
  tx: Tx,
  { announce, now }: PolicyDeps,
  context: Context,
  { action, before, after, facts }: Change,
): Promise<PolicyOnWire> {
  const { organizationId } = context.principal
  // Who drafts a revision does not approve it (approvals/two-persons.ts).
  const isDrafting = action === 'updated'
  const policy = isDrafting
    ? { ...after.policy, drafted_by: context.principal.credentialId }
    : after.policy
  if (policy.revision > revisionMax) throw noMoreRevisions()
  const answer = presentPolicy(policy, after.current)
  const version = versionInForce(policy)
  const changesForce = version !== versionInForce(before.policy)
  // Processes name the policy in their events by the name it has now.
  const isRenamed = version !== null && policy.name !== before.policy.name
  await savePolicy(tx, organizationId, policy, before.policy.revision)
  await announce(tx, {
    organizationId,
    by: callerOf(context),
    action,
    before: presentPolicy(before.policy, before.current),
    after: answer,
    facts: { ...factsOf(policy), ...facts },
    notifies: changesForce || isRenamed ? 'policy' : 'policy_draft',
  })
  if (changesForce) {
    await enterEpoch(tx, { organizationId, policyId: policy.id, version, at: now() })
  }
  return answer
}

/** The members of an audit event that describe the policy. */
export const factsOf = ({ id, name, revision, current_version }: Policy) => ({
  policy_id: id,
  policy_name: name,
  revision,
  version: current_version,
})
