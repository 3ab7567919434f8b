import { pageOf } from '@gatehouse/contract/list'
import {
  type PolicyDecisionCount,
  readPolicyDecisions,
} from '@gatehouse/contract/policy-evaluation'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { readDays } from '#http/read-days.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { requirePolicy } from '#policies/find-policy.ts'

import { decisionCursor, readDecisionCursor } from './decision-cursor.ts'
import { type DecisionSum, sumDecisions } from './decision-store.ts'

const daysMax = { hour: 31, day: 366 }

export function serveReadPolicyDecisions(
  app: FastifyInstance,
  { db, now }: { db: Db; now: Clock },
) {
  bind(app, readPolicyDecisions, async ({ params, query }, { principal: { organizationId } }) => {
    const { by, limit, order, after, project_id: projectId } = query
    const days = readDays(query, now(), daysMax[by])
    const position = after === undefined ? undefined : readDecisionCursor(after, by)
    const policy = await requirePolicy(db, organizationId, params.policy_id)
    const key = { organizationId, policyId: policy.id }
    const sums = await sumDecisions(db, key, {
      ...days,
      by,
      limit,
      order,
      projectId,
      after: position,
    })
    return pageOf(
      sums.map((sum) => present(sum, by)),
      limit,
    )
  })
}

function present(sum: DecisionSum, by: 'hour' | 'day'): PolicyDecisionCount {
  const { start, version, project_id, direction, decision, mode, count } = sum
  return {
    id: decisionCursor([by, start, version, project_id, direction, decision, mode]),
    object: 'organization.policy.decisions',
    start,
    version,
    project_id: project_id || null,
    direction,
    decision,
    mode,
    count: Number(count),
  }
}
