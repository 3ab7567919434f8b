import type { EventQuery } from '@gatehouse/contract/exports/audit-event'

import { ApiError } from '#platform/api-error.ts'

import type { EventFilters } from './event-filter-store.ts'

/** The filters of a query under our names. */
export const readFilters = (query: EventQuery): EventFilters => ({
  kind: query.type,
  actor: query.actor,
  action: query.action,
  objectId: query.object_id,
  requestId: query.request_id,
  keyId: query.key_id,
  outcome: query.outcome,
  policyId: query.policy_id,
  projectId: query.project_id,
  decision: query.decision,
})

/** Refuses a range that ends before it begins. */
export function readRange(query: Pick<EventQuery, 'from' | 'to'>) {
  const from = query.from === undefined ? undefined : new Date(query.from)
  const to = query.to === undefined ? undefined : new Date(query.to)
  if (from && to && from > to) {
    const message = "'query.from' must not be later than to."
    throw new ApiError('invalid_parameter', message, { param: 'query.from' })
  }
  return { from, to }
}
