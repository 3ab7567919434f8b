import { hash } from 'node:crypto'

import type { callOutcomes, revisionActions } from '@gatehouse/contract/exports/audit-event'

import { createUuid } from '#platform/id.ts'

import {
  type Acting,
  type Actor,
  type ActorType,
  actorTypeOf,
  describeActor,
  personOf,
} from './actor.ts'
import { describePolicies, nothingFound, type PolicyReport } from './policy-report.ts'
import { type Resource, revisionContent } from './revision-content.ts'
import { saltBytes, takeSalt } from './salt.ts'
import { shardOf } from './shard.ts'

export type RevisionAction = (typeof revisionActions)[number]

/** The caller of an endpoint. */
export function callerOf(call: { principal: Acting; requestId: string }): Actor {
  const { principal, requestId } = call
  const { credentialId: id, member } = principal
  const person = member && { name: member.name, email: member.email }
  return { id, type: actorTypeOf(principal), requestId, ...(person && { person }) }
}

export const operator: Actor = { id: 'operator', type: 'operator', requestId: null }

/** For what the service notices by itself. */
export const gatehouse: Actor = { id: 'gatehouse', type: 'gatehouse', requestId: null }

export const stripeActor = (requestId: string): Actor => ({
  id: 'stripe',
  type: 'stripe',
  requestId,
})

/** A change of a resource: `before` is null for a new one, `after` for a deleted one. */
export type Revision = {
  organizationId: string
  by: Actor
  action: RevisionAction
  /** Further members of the header, which sinks can filter by. */
  facts?: EventHeader
} & ({ before: Resource | null; after: Resource } | { before: Resource; after: null })

type PlainValue = string | number | boolean | null
/** The members of an event that sinks can filter by. The only objects are those of lists, and they are flat. */
export type EventHeader = Record<
  string,
  PlainValue | readonly string[] | readonly Readonly<Record<string, PlainValue>>[]
>

export type Event = {
  id: string
  /** The UTC day of the id. */
  day: string
  shard: number
  organizationId: string
  kind: 'revision' | 'enforcement' | 'simulation'
  at: Date
  header: EventHeader
  payload: Buffer
  salt: Buffer
  payloadHash: Buffer
}

export function buildRevisionEvent(revision: Revision, at: Date): Event {
  const { organizationId, by, action, before, after, facts } = revision
  const { object, id: objectId } = resourceOf(revision)
  const header = {
    action,
    object,
    object_id: objectId,
    ...describeActor(by),
    ...facts,
  }
  const historyId = facts?.['history_id']
  const content = revisionContent(
    { before, after, ...personOf(by) },
    typeof historyId === 'string' ? historyId : undefined,
  )
  return buildEvent({ organizationId, kind: 'revision', at, header, content })
}

/**
 * How a call to a model ended. `refused`: it was not sent to one. `blocked`: a policy refused it or ended its answer.
 * `unknown`: its process died first.
 */
export type CallOutcome = (typeof callOutcomes)[number]

/** Under this name are the events of callers who belong to no organization. No organization has such an id. */
export const operatorOrganizationId = 'operator'

/** A call to a model (docs/specification/audit-events.md#call-events), without prompts and answers. */
export type CallReport = {
  organizationId: string
  requestId: string
  projectId: string | null
  actor: string
  /** Undefined where only the hold of an earlier release is left of the call. */
  actorType: ActorType | undefined
  /** The project's name at the time of the call. */
  projectLabel?: string | null | undefined
  /** The subject of the token, or the member whose own key the call was made with. */
  userId?: string | null | undefined
  /** The labels of the project at the time of the call, if it has any. */
  projectLabels?: Readonly<Record<string, string>> | null
  /** Null if the request does not name one that exists. */
  model: string | null
  /** What was called, or the label that the caller gave it. */
  target: string
  /** The user that the caller named. */
  user?: string | null
  /** Who is counted, where users have quotas. */
  quotaSubject?: string | null | undefined
  outcome: CallOutcome
  /** Why a call was refused: the status and the code of its answer. */
  refusal?: { status: number; code: string }
  /** The `meta` of its ledger entry, and the credits. */
  usage: object
  /** Null if that is not known. */
  policies: PolicyReport | null
  /** What the organization says of its data, if it has a configuration of the policy gateway. */
  dataClassification?: string | null
  /** The quotas and budgets that the call counts in; a trigger adds up what is said here (migrations/0031). */
  quotas?: CountedReport | null | undefined
  /** From the arrival of the request to the end of the call; undefined if that is not known. */
  durationMs?: number
  /** To the first of a streamed answer that had left. */
  firstTokenMs?: number
  /** Of the error that ended a call which was not refused. */
  status?: number
}

export type CountedReport = {
  day: string
  subjects: readonly { scope: string; subject: string }[]
  /** Whose quotas the call exceeds, where those are not enforced. */
  exceeded?: readonly string[]
  tokens: number
  credits: number
}

export function buildCallEvent(report: CallReport, at: Date): Event {
  const { organizationId, usage, projectLabels, durationMs, firstTokenMs, status } = report
  // In the payload: what an organization writes there may have to be erased. Members that are undefined are left out.
  const content = {
    usage,
    duration_ms: durationMs,
    first_token_ms: firstTokenMs,
    status,
    ...(projectLabels && { project_labels: projectLabels }),
  }
  const header: EventHeader = {
    phase: 'call',
    request_id: report.requestId,
    project_id: report.projectId,
    ...(report.projectLabel != null && { project_label: report.projectLabel }),
    actor: report.actor,
    ...(report.actorType && { actor_type: report.actorType }),
    ...(report.userId != null && { user_id: report.userId }),
    model: report.model,
    policy_target: report.target,
    ...(report.user != null && { policy_user: report.user }),
    ...(report.quotaSubject != null && { quota_subject: report.quotaSubject }),
    outcome: report.outcome,
    ...report.refusal,
    ...(report.dataClassification != null && { data_classification: report.dataClassification }),
    ...(report.policies && describePolicies(report.policies)),
    ...(report.quotas && describeQuotas(report.quotas)),
  }
  return buildEvent({ organizationId, kind: 'enforcement', at, header, content })
}

/** What policies in plain language that only monitor have said of a call after its end. */
export type MonitoringReport = Pick<PolicyReport, 'matches' | 'unevaluated'> & {
  /** Why some could not be evaluated; null if all were. */
  reason: string | null
  /** Which judge was asked; null if there was none. */
  judge: { id: string; calibration: string } | null
}

/** Its members are those of the call's event, so that both are found by the same filters. */
export function buildMonitoringEvent(
  callEvent: Pick<Event, 'id' | 'organizationId' | 'header'>,
  { matches, unevaluated, reason, judge }: MonitoringReport,
  at: Date,
): Event {
  const { request_id, project_id, actor, model, policy_target, policy_epoch } = callEvent.header
  const header: EventHeader = {
    ...describePolicies({ ...nothingFound, matches, unevaluated }),
    phase: 'monitoring',
    call_event_id: callEvent.id,
    request_id: request_id ?? null,
    project_id: project_id ?? null,
    actor: actor ?? null,
    model: model ?? null,
    policy_target: policy_target ?? null,
    policy_epoch: policy_epoch ?? null,
    ...pickKnown(callEvent.header, [
      'actor_type',
      'project_label',
      'user_id',
      'data_classification',
    ]),
    ...(reason !== null && { unevaluated_reason: reason }),
  }
  const { organizationId } = callEvent
  return buildEvent({ organizationId, kind: 'enforcement', at, header, content: { judge } })
}

/** The members of these names that the header has. */
const pickKnown = (header: EventHeader, names: readonly string[]): EventHeader =>
  Object.fromEntries(Object.entries(header).filter(([name]) => names.includes(name)))

/** A simulation of the policy gateway that was kept in its history. */
type SimulationReport = {
  organizationId: string
  by: Actor
  historyId: string
  /** What was simulated, and what came out. */
  facts: EventHeader
}

export function buildSimulationEvent(report: SimulationReport, at: Date): Event {
  const { organizationId, by, historyId, facts } = report
  const header: EventHeader = {
    history_id: historyId,
    persisted: true,
    ...describeActor(by),
    ...facts,
  }
  return buildEvent({ organizationId, kind: 'simulation', at, header, content: personOf(by) })
}

const describeQuotas = ({ day, subjects, exceeded = [], tokens, credits }: CountedReport) => ({
  quotas: subjects,
  ...(exceeded.length > 0 && { quotas_exceeded: exceeded }),
  quota_day: day,
  quota_tokens: tokens,
  quota_credits: credits,
})

type EventSource = Pick<Event, 'organizationId' | 'kind' | 'at' | 'header'> & { content: object }

function buildEvent({ organizationId, kind, at, header, content }: EventSource): Event {
  const text = JSON.stringify(content)
  // The hash is over the salt and the payload, so the two lie side by side.
  const salted = Buffer.allocUnsafe(saltBytes + Buffer.byteLength(text))
  takeSalt().copy(salted)
  salted.write(text, saltBytes)
  return {
    id: createUuid(at),
    day: at.toISOString().slice(0, 10),
    shard: shardOf(organizationId),
    organizationId,
    kind,
    at,
    header,
    payload: salted.subarray(saltBytes),
    salt: salted.subarray(0, saltBytes),
    payloadHash: hash('sha256', salted, 'buffer'),
  }
}

/** The resource that changed. */
export const resourceOf = ({ before, after }: Revision): Resource => after ?? before
