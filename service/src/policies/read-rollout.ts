import { type PolicyRollout, readPolicyRollout } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import type { Db } from '#platform/database.ts'

import { readEpoch } from './epoch-store.ts'
import { requirePolicy } from './find-policy.ts'
import { readStandings } from './rollout-store.ts'
import { countStandings } from './rollout.ts'
import { versionInForce } from './save-change.ts'

export function serveReadPolicyRollout(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, readPolicyRollout, ({ params }, { principal: { organizationId } }) =>
    readRollout(db, { organizationId, policyId: params.policy_id }),
  )
}

type Place = { organizationId: string; policyId: string }

export async function readRollout(db: Db, place: Place): Promise<PolicyRollout> {
  const policy = await requirePolicy(db, place.organizationId, place.policyId)
  return {
    object: 'organization.policy.rollout',
    policy_id: policy.id,
    current_version: policy.current_version,
    version_in_force: versionInForce(policy),
    policy_epoch: await readEpoch(db, place.organizationId),
    ...countStandings(await readStandings(db, place)),
  }
}
