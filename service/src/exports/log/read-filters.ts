import type { EventQuery } from '@gatehouse/contract/exports/audit-event'

import { ApiError } from '#platform/api-error.ts'

import type { EventFilters } from './event-filter-store.ts'
import type { TimeRange } from './event-time-store.ts'

/** The filters of a query under our names. */
export const readFilters = (query: Omit<EventQuery, 'from' | 'to'>): EventFilters => ({
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

const momentOf = (text: string | undefined) => (text === undefined ? undefined : new Date(text))

/** Refuses a range that ends before it begins. */
export function readRange<Text extends string | undefined>(query: { from: Text; to: Text }) {
  const [from, to] = [momentOf(query.from), momentOf(query.to)]
  if (from && to && from > to) {
    const message = "'query.from' must not be later than to."
    throw new ApiError('invalid_parameter', message, { param: 'query.from' })
  }
  return { from, to } as Text extends string ? { from: Date; to: Date } : TimeRange
}
