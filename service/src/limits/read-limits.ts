import { readLimits, type ScopeLimits } from '@gatehouse/contract/limits'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'

import type { Counters } from './counters.ts'
import { type Amounts, type Limits, type Metric, metrics } from './limits.ts'
import { limitsByTier, tierOf } from './tiers.ts'

export type ReadLimitsTools = {
  inferenceCounters: Pick<Counters, 'read'>
  adminCounters: Pick<Counters, 'read'>
  adminCallLimits: Limits
  /** Whether all processes count in one place at the moment. */
  areLimitsExact: () => boolean
}

const shownMax = 100
const nothing = Object.fromEntries(metrics.map((metric) => [metric, 0])) as Amounts

export function serveReadLimits(app: FastifyInstance, tools: ReadLimitsTools) {
  bind(app, readLimits, async (_, { principal }) => {
    const { organizationId, plan, paidMicroUsd } = principal
    const tier = tierOf(principal)
    const limits = limitsByTier[tier]
    const used = await tools.inferenceCounters.read(organizationId)
    const administration = await tools.adminCounters.read(organizationId)
    const { organization, project, key } = limits
    return {
      object: 'organization.limits' as const,
      ...{ tier, plan, lifetime_paid_usd: paidMicroUsd / 1_000_000 },
      is_exact: tools.areLimitsExact(),
      organization: present(organization, used.organization),
      each_project: present(project, nothing),
      each_key: present(key, nothing),
      projects: closestFirst(project, used.projects).map(([project_id, amounts]) => ({
        ...{ project_id, ...present(project, amounts) },
      })),
      keys: closestFirst(key, used.keys).map(([key_id, amounts]) => ({
        ...{ key_id, ...present(key, amounts) },
      })),
      administration: present(tools.adminCallLimits.organization, administration.organization),
    }
  })
}

function present(limits: Amounts, used: Amounts): ScopeLimits {
  const standing = (metric: Metric) => ({
    limit: limits[metric] === Infinity ? null : limits[metric],
    used: used[metric],
  })
  return Object.fromEntries(metrics.map((metric) => [metric, standing(metric)])) as ScopeLimits
}

function closestFirst(limits: Amounts, all: ReadonlyMap<string, Amounts>) {
  const share = (used: Amounts) =>
    Math.max(...metrics.map((metric) => used[metric] / limits[metric]))
  return [...all].toSorted(([, one], [, other]) => share(other) - share(one)).slice(0, shownMax)
}
