import { readLimits, type ScopeLimits } from '@gatehouse/contract/limits'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'

import type { Counters } from './counters/counters.ts'
import { metricNames } from './limit-metrics.ts'
import type { Amounts, Limits } from './limits.ts'
import { limitsByTier, tierOf } from './tiers.ts'

type ReadLimitsDeps = {
  inferenceCounters: Pick<Counters, 'read'>
  adminCounters: Pick<Counters, 'read'>
  adminCallLimits: Limits
  /** Whether all calls are counted in Redis at the moment. */
  areLimitsExact: () => boolean
}

const listedMax = 100
const unused = Object.fromEntries(metricNames.map((metric) => [metric, 0])) as Amounts

export function serveReadLimits(app: FastifyInstance, deps: ReadLimitsDeps) {
  bind(app, readLimits, async (_, { principal }) => {
    const { organizationId, plan, paidMicroUsd } = principal
    const tier = tierOf(principal)
    const { organization, project, key } = limitsByTier[tier]
    const used = await deps.inferenceCounters.read(organizationId)
    const administration = await deps.adminCounters.read(organizationId)
    return {
      object: 'organization.limits' as const,
      tier,
      plan,
      lifetime_paid_usd: paidMicroUsd / 1_000_000,
      is_exact: deps.areLimitsExact(),
      organization: toScopeLimits(organization, used.organization),
      each_project: toScopeLimits(project, unused),
      each_key: toScopeLimits(key, unused),
      projects: nearestFirst(project, used.projects).map(([project_id, amounts]) => ({
        project_id,
        ...toScopeLimits(project, amounts),
      })),
      keys: nearestFirst(key, used.keys).map(([key_id, amounts]) => ({
        key_id,
        ...toScopeLimits(key, amounts),
      })),
      administration: toScopeLimits(deps.adminCallLimits.organization, administration.organization),
    }
  })
}

function toScopeLimits(limits: Amounts, used: Amounts): ScopeLimits {
  const members = metricNames.map((metric) => {
    const limit = limits[metric] === Infinity ? null : limits[metric]
    return [metric, { limit, used: used[metric] }]
  })
  return Object.fromEntries(members) as ScopeLimits
}

/** The projects or keys that are closest to one of their limits, closest first. */
function nearestFirst(limits: Amounts, all: ReadonlyMap<string, Amounts>) {
  const largestShare = (used: Amounts) =>
    Math.max(...metricNames.map((metric) => used[metric] / limits[metric]))
  return [...all]
    .toSorted(([, left], [, right]) => largestShare(right) - largestShare(left))
    .slice(0, listedMax)
}
