import { readGatewayRollout } from '@gatehouse/contract/policy-gateway/gateway'
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

import { reportArms } from './arm-report.ts'
import { readDecisionCounts } from './decision-count-store.ts'
import { windowStart } from './spike.ts'

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
