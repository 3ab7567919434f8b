import { type PolicyRollout, readPolicyRollout } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import type { Db } from '#platform/database.ts'
import { requirePolicy } from '#policies/find-policy.ts'
import type { PolicyKey } from '#policies/policy.ts'
import { versionInForce } from '#policies/save-change.ts'

import { readEpoch } from './epoch-store.ts'
import { readProcessGroups } from './rollout-store.ts'
import { countProcesses } from './rollout.ts'

export function serveReadPolicyRollout(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, readPolicyRollout, ({ params }, { principal: { organizationId } }) =>
    readRollout(db, { organizationId, policyId: params.policy_id }),
  )
}

export async function readRollout(db: Db, key: PolicyKey): Promise<PolicyRollout> {
  const policy = await requirePolicy(db, key.organizationId, key.policyId)
  return {
    object: 'organization.policy.rollout',
    policy_id: policy.id,
    current_version: policy.current_version,
    version_in_force: versionInForce(policy),
    policy_epoch: await readEpoch(db, key.organizationId),
    ...countProcesses(await readProcessGroups(db, key)),
  }
}
