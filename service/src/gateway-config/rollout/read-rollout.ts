import {
  type GatewayArmReport,
  gatewayDecisions,
  readGatewayRollout,
} from '@gatehouse/contract/policy-gateway/gateway'
import type { FastifyInstance } from 'fastify'

import { findConfig } from '#gateway-config/config/config-store.ts'
import { toSecondText } from '#gateway-config/config/saved-config.ts'
import { isRolledBack } from '#gateway-config/decide/arm.ts'
import { bind } from '#http/bind.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { readEpoch } from '#policies/rollout/epoch-store.ts'
import { readProcessGroups } from '#policies/rollout/rollout-store.ts'
import { countProcesses } from '#policies/rollout/rollout.ts'

import { type CountRow, readDecisionCounts } from './decision-count-store.ts'
import { windowStart } from './spike.ts'
import { wilsonInterval } from './wilson.ts'

const countedMinutes = 24 * 60

export function serveReadGatewayRollout(app: FastifyInstance, { db, now }: { db: Db; now: Clock }) {
  bind(app, readGatewayRollout, async (_, { principal: { organizationId } }) => {
    const saved = await findConfig(db, organizationId)
    const groups = await readProcessGroups(db, { organizationId, policyId: null })
    const { versions, ...counts } = countProcesses(groups)
    const since = windowStart(countedMinutes, null, now())
    const until = saved?.rolledBackUntil ?? null
    return {
      object: 'policy_gateway.rollout' as const,
      revision: saved?.revision ?? 0,
      policy_epoch: await readEpoch(db, organizationId),
      ...counts,
      revisions: versions.map(({ version, processes }) => ({ revision: version ?? 0, processes })),
      rolled_back_until: until && isRolledBack(until, now()) ? toSecondText(until) : null,
      counted_since: toSecondText(since),
      arms: reportArms(await readDecisionCounts(db, [{ organizationId, since }])),
    }
  })
}

const arms = ['canary', 'shadow', 'enforced'] as const

/** What each arm of one organization's rollout has decided. */
const reportArms = (rows: readonly CountRow[]): GatewayArmReport[] =>
  arms.map((arm) => {
    const ofArm = rows.filter((row) => row.arm === arm)
    const requests = ofArm.reduce((sum, { count }) => sum + count, 0)
    const decisions = gatewayDecisions.map((decision) => {
      const count = ofArm.find((row) => row.decision === decision)?.count ?? 0
      const { low, high } = wilsonInterval(count, requests)
      return {
        decision,
        requests: count,
        share: requests === 0 ? null : count / requests,
        share_low: low,
        share_high: high,
      }
    })
    return { arm, requests, decisions }
  })
