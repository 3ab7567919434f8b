import { retrievePolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import type { Db } from '#platform/database.ts'

import { findCurrent, requirePolicy } from './find-policy.ts'
import { presentPolicy } from './present-policy.ts'

export function serveRetrievePolicy(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, retrievePolicy, async ({ params }, { principal: { organizationId } }) => {
    const policy = await requirePolicy(db, organizationId, params.policy_id)
    return presentPolicy(policy, await findCurrent(db, organizationId, policy))
  })
}
