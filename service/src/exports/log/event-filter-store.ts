import { type RawBuilder, sql } from 'kysely'

/** Which events are asked for. */
export type EventFilters = {
  kind?: 'enforcement' | 'simulation' | 'revision' | undefined
  actor?: string | undefined
  action?: string | undefined
  objectId?: string | undefined
  requestId?: string | undefined
  /** The key that calls were made with. */
  keyId?: string | undefined
  outcome?: string | undefined
  policyId?: string | undefined
  projectId?: string | undefined
  decision?: string | undefined
}

/** How many of the filters are given. */
export const countFilters = (filters: EventFilters): number =>
  Object.values(filters).filter((value) => value !== undefined).length

/** The conditions are written as those of the indexes in migrations/0020 and 0041, which are used for no others. */
export function conditionsOf(organizationId: string, filters: EventFilters): RawBuilder<unknown>[] {
  const { kind, policyId, projectId } = filters
  const conditions = [isOf(organizationId, filters)]
  if (kind !== undefined) conditions.push(sql`kind = ${kind}`)
  if (kind !== undefined && kind !== 'enforcement') conditions.push(isNoCall)
  if (policyId !== undefined) conditions.push(sql`header->>'policy_id' = ${policyId}`)
  if (projectId !== undefined) conditions.push(sql`header->>'project_id' = ${projectId}`)
  conditions.push(...conditionsOnActor(organizationId, filters), ...conditionsOnResult(filters))
  return conditions
}

/**
 * Two indexes do not begin with the organization. Where one of them is all there is to use, PostgreSQL must not read every event
 * of the organization instead: a plan that is kept is made without knowing how rare an actor is.
 */
function isOf(organizationId: string, filters: EventFilters) {
  const { actor, keyId, requestId } = filters
  const isOnly = countFilters(filters) === 1 && (actor ?? keyId ?? requestId) !== undefined
  return isOnly
    ? sql`case when organization_id = ${organizationId} then true else false end`
    : sql`organization_id = ${organizationId}`
}

const isNoCall = sql`kind <> 'enforcement'`

function conditionsOnActor(organizationId: string, { actor, keyId, requestId }: EventFilters) {
  const conditions: RawBuilder<unknown>[] = []
  if (actor !== undefined) conditions.push(isActor(organizationId, actor))
  if (keyId !== undefined) {
    conditions.push(sql`kind = 'enforcement'`, isActor(organizationId, keyId))
  }
  if (requestId !== undefined) conditions.push(sql`header->>'request_id' = ${requestId}`)
  return conditions
}

/** Two actors may have the same hash. Without the case, PostgreSQL would take the second condition for one more that is rarely met. */
const isActor = (organizationId: string, actor: string) =>
  sql`hashtextextended(organization_id || (header->>'actor'), 0) = hashtextextended(${organizationId}::text || ${actor}::text, 0)
    and case when header->>'actor' = ${actor} then true else false end`

function conditionsOnResult({ action, objectId, outcome, decision }: EventFilters) {
  const conditions: RawBuilder<unknown>[] = []
  if (action !== undefined) conditions.push(sql`header->>'action' = ${action} and ${isNoCall}`)
  if (objectId !== undefined) {
    conditions.push(sql`header->>'object_id' = ${objectId} and ${isNoCall}`)
  }
  if (outcome !== undefined) conditions.push(isOutcome(outcome))
  if (decision !== undefined) conditions.push(isDecision(decision))
  return conditions
}

/**
 * Of what is allowed or completed no index and so no statistics exist. PostgreSQL would take it for rare, read everything and
 * sort it.
 */
const isOutcome = (outcome: string) =>
  outcome === 'completed'
    ? sql`case when header->>'outcome' = 'completed' then true else false end`
    : sql`header->>'outcome' = ${outcome} and header->>'outcome' <> 'completed'`

const isDecision = (decision: string) =>
  decision === 'allow'
    ? sql`case when header->>'decision' = 'allow' then true else false end`
    : sql`header->>'decision' = ${decision} and header->>'decision' <> 'allow'`
