import { type Policy as PolicyOnWire, revisionMax } from '@gatehouse/contract/policy'

import { callerOf, type RevisionAction } from '#audit/event.ts'
import type { Principal } from '#http/principal.ts'
import type { Tx } from '#platform/database.ts'

import { enterEpoch } from './epoch-store.ts'
import { isInForce } from './policy-state.ts'
import { savePolicy } from './policy-store.ts'
import type { Policy, Version } from './policy.ts'
import { presentPolicy } from './present-policy.ts'
import { noMoreRevisions } from './refusals.ts'
import type { PolicyTools } from './tools.ts'

/** A policy and the version it has published. */
type Whole = { policy: Policy; current: Version | undefined }

type Change = {
  action: RevisionAction
  before: Whole
  after: Whole
  facts?: Record<string, number>
}

type Caller = { principal: Principal; requestId: string }

export const versionInForce = (policy: Policy) =>
  isInForce(policy.state) ? policy.current_version : null

/** Saves a changed policy, says so, and begins a new epoch if another version is now in force. */
export async function saveChange(
  tx: Tx,
  { announce, now }: PolicyTools,
  call: Caller,
  { action, before, after, facts }: Change,
): Promise<PolicyOnWire> {
  const { organizationId } = call.principal
  const { policy } = after
  if (policy.revision > revisionMax) throw noMoreRevisions()
  const answer = presentPolicy(policy, after.current)
  const version = versionInForce(policy)
  const changesForce = version !== versionInForce(before.policy)
  await savePolicy(tx, organizationId, policy, before.policy.revision)
  await announce(tx, {
    ...{ organizationId, by: callerOf(call), action },
    before: presentPolicy(before.policy, before.current),
    after: answer,
    facts: { ...factsOf(policy), ...facts },
    tells: changesForce ? 'policy' : 'policy_draft',
  })
  if (changesForce) {
    await enterEpoch(tx, { organizationId, policyId: policy.id, version, at: now() })
  }
  return answer
}

/** What an event says about the policy it is about (card H). */
export const factsOf = ({ id, name, revision, current_version }: Policy) => ({
  policy_id: id,
  policy_name: name,
  revision,
  version: current_version,
})
