import {
  type InferenceLimits,
  type LimitOverrides,
  type LimitValues,
  readLimits,
  type ScopeLimits,
} from '@gatehouse/contract/limits'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import type { Principal } from '#http/principal.ts'

import type { Counters } from './counters/counters.ts'
import { applyOverrides, sourceOf } from './effective-limits.ts'
import { metricNames } from './limit-metrics.ts'
import type { LimitTable } from './limits-file.ts'
import type { Amounts, Limits, Scope } from './limits.ts'
import { tierOf } from './tiers.ts'

/** The limits that were set for some projects or keys of an organization, by id. */
type FindOwnLimits = (
  organizationId: string,
  scope: 'project' | 'key',
  ids: readonly string[],
) => Promise<ReadonlyMap<string, LimitValues>>

type ReadLimitsDeps = {
  inferenceCounters: Pick<Counters, 'read'>
  adminCounters: Pick<Counters, 'read'>
  adminCallLimits: Limits
  table: () => LimitTable
  findOwnLimits: FindOwnLimits
  /** Whether all calls are counted in Redis at the moment. */
  areLimitsExact: () => boolean
}

const listedMax = 100
const unused = Object.fromEntries(metricNames.map((metric) => [metric, 0])) as Amounts

export function serveReadLimits(app: FastifyInstance, deps: ReadLimitsDeps) {
  bind(app, readLimits, async (_, { principal }) => {
    const { organizationId, plan, paidMicroUsd } = principal
    const used = await deps.inferenceCounters.read(organizationId)
    const administration = await deps.adminCounters.read(organizationId)
    const table = deps.table()
    const ofOrganization = principal.limitOverrides?.organization ?? {}
    const show = (scope: Scope, amounts: Amounts, own: LimitValues) =>
      toInferenceLimits(table, principal, { scope, amounts, own })
    const list = async (scope: 'project' | 'key', all: ReadonlyMap<string, Amounts>) => {
      const own = await deps.findOwnLimits(organizationId, scope, [...all.keys()])
      const shown = [...all].map(([id, amounts]) => ({
        id,
        limits: show(scope, amounts, own.get(id) ?? {}),
      }))
      return nearestFirst(shown)
    }
    const projects = await list('project', used.projects)
    const keys = await list('key', used.keys)
    return {
      object: 'organization.limits' as const,
      tier: tierOf(principal),
      plan,
      lifetime_paid_usd: paidMicroUsd / 1_000_000,
      is_exact: deps.areLimitsExact(),
      organization: show('organization', used.organization, ofOrganization),
      each_project: show('project', unused, {}),
      each_key: show('key', unused, {}),
      projects: projects.map(({ id, limits }) => ({ project_id: id, ...limits })),
      keys: keys.map(({ id, limits }) => ({ key_id: id, ...limits })),
      administration: toScopeLimits(deps.adminCallLimits.organization, administration.organization),
    }
  })
}

type Shown = {
  scope: Scope
  amounts: Amounts
  /** The limits that were set for this project, key or organization. */
  own: LimitValues
}

function toInferenceLimits(
  table: LimitTable,
  { plan, paidMicroUsd }: Principal,
  { scope, amounts, own }: Shown,
): InferenceLimits {
  const limitOverrides: LimitOverrides = { [scope]: own }
  const caller = { plan, paidMicroUsd, limitOverrides }
  const limits = applyOverrides(table.byTier[tierOf(caller)], limitOverrides)
  const members = metricNames.map((metric) => [
    metric,
    {
      ...toUsage(limits[scope][metric], amounts[metric]),
      source: sourceOf(table, caller, scope, metric),
    },
  ])
  return Object.fromEntries(members) as InferenceLimits
}

const toScopeLimits = (limits: Amounts, used: Amounts) =>
  Object.fromEntries(
    metricNames.map((metric) => [metric, toUsage(limits[metric], used[metric])]),
  ) as ScopeLimits

const toUsage = (limit: number, used: number) => ({
  limit: limit === Infinity ? null : limit,
  used,
})

/** The projects or keys that are closest to one of their limits, closest first. */
function nearestFirst<Entry extends { limits: InferenceLimits }>(all: readonly Entry[]): Entry[] {
  const largestShare = ({ limits }: Entry) =>
    Math.max(
      ...metricNames.map((metric) => limits[metric].used / (limits[metric].limit ?? Infinity)),
    )
  return all
    .map((entry) => ({ entry, share: largestShare(entry) }))
    .toSorted((left, right) => right.share - left.share)
    .slice(0, listedMax)
    .map(({ entry }) => entry)
}
