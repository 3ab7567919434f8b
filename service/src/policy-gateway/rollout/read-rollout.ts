import { readGatewayRollout } from '@gatehouse/contract/policy-gateway/gateway'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { readEpoch } from '#policies/rollout/epoch-store.ts'
import { readProcessGroups } from '#policies/rollout/rollout-store.ts'
import { countProcesses } from '#policies/rollout/rollout.ts'
import { findConfig } from '#policy-gateway/config/config-store.ts'
import { toSeconds } from '#policy-gateway/config/saved-config.ts'
import { isRolledBack } from '#policy-gateway/decide/arm.ts'

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
      rolled_back_until: until && isRolledBack(until, now()) ? toSeconds(until) : null,
      counted_since: toSeconds(since),
      arms: reportArms(await readDecisionCounts(db, [{ organizationId, since }])),
    }
  })
}
