import { windowMetrics } from '#limits/limit-metrics.ts'
import type { Amounts, ScopeIds, ScopeUsage } from '#limits/limits.ts'

import { liveBuckets, sum } from './buckets.ts'
import { keyField, projectField, scopeField } from './counter-names.ts'
import type { OrganizationUsage } from './counters.ts'
import type { OrganizationCounts } from './organization-counts.ts'

/** The current usage of each scope of a call. */
export function scopeUsage(
  counts: OrganizationCounts,
  ids: Omit<ScopeIds, 'organizationId'>,
  nowMs: number,
): ScopeUsage {
  const ofOrganization = liveLeases(counts, nowMs)
  const ofProject = ofOrganization.filter((name) =>
    name.includes(`|${projectField(ids.projectId)}|`),
  )
  const ofKey = ofProject.filter((name) => name.endsWith(`|${keyField(ids.keyId)}|`))
  const usage = (scope: keyof ScopeUsage, leases: readonly string[]) =>
    fieldUsage(counts, scopeField(scope, ids), { slots: leases.length, nowMs })
  return {
    organization: usage('organization', ofOrganization),
    project: usage('project', ofProject),
    key: usage('key', ofKey),
  }
}

export function organizationUsage(counts: OrganizationCounts, nowMs: number): OrganizationUsage {
  const none = { projectId: '', keyId: '' }
  const projects = new Map<string, Amounts>()
  const keys = new Map<string, Amounts>()
  for (const field of counts.counters.keys()) {
    const id = field.slice(1)
    if (field === projectField(id)) {
      projects.set(id, scopeUsage(counts, { ...none, projectId: id }, nowMs).project)
    }
    if (field === keyField(id)) keys.set(id, keyUsage(counts, field, nowMs))
  }
  return { organization: scopeUsage(counts, none, nowMs).organization, projects, keys }
}

/** A key belongs to one project, so its leases are found without the project. */
function keyUsage(counts: OrganizationCounts, field: string, nowMs: number): Amounts {
  const leases = liveLeases(counts, nowMs).filter((name) => name.endsWith(`|${field}|`))
  return fieldUsage(counts, field, { slots: leases.length, nowMs })
}

function fieldUsage(
  { counters }: OrganizationCounts,
  field: string,
  { slots, nowMs }: { slots: number; nowMs: number },
): Amounts {
  const sums = windowMetrics.map(({ metric, window, unit }) => [
    metric,
    sum(liveBuckets(counters.get(field), window, nowMs), unit),
  ])
  return { ...Object.fromEntries(sums), concurrent_requests: slots } as Amounts
}

const liveLeases = ({ leases }: OrganizationCounts, nowMs: number) =>
  [...leases].filter(([, endsAtMs]) => endsAtMs >= nowMs).map(([name]) => name)
