import { createHash, randomBytes } from 'node:crypto'

import { createUuid } from '#platform/id.ts'

/** What somebody did to a resource of an organization (card H, revision events). */
export type RevisionAction =
  | 'created'
  | 'updated'
  | 'published'
  | 'paused'
  | 'resumed'
  | 'deleted'
  | 'archived'
  | 'suspended'
  | 'reinstated'

/** Who did it: the id of a key, `operator` or `stripe`; with the request it came in, if one did. */
export type Actor = { readonly id: string; readonly requestId: string | null }

/** The caller of an endpoint. */
export const callerOf = (call: {
  principal: { credentialId: string }
  requestId: string
}): Actor => ({
  id: call.principal.credentialId,
  requestId: call.requestId,
})

export const operator: Actor = { id: 'operator', requestId: null }

/** Stripe, in a call to its webhook. */
export const stripe = (requestId: string): Actor => ({ id: 'stripe', requestId })

/** A resource as its reader sees it: whatever is secret has never been part of it. */
type Resource = { readonly id: string; readonly object: string }

/** One administration change: what it was, and what it became. One of them may be missing. */
export type Revision = {
  organizationId: string
  by: Actor
  action: RevisionAction
  /** Members that sinks filter by, beside those of every event. */
  facts?: Record<string, string | number | null>
} & ({ before: Resource | null; after: Resource } | { before: Resource; after: null })

export type Event = {
  id: string
  /** The UTC day of the id. */
  day: string
  shard: number
  organizationId: string
  kind: 'revision' | 'enforcement'
  at: Date
  header: Record<string, string | number | null>
  payload: Buffer
  salt: Buffer
  payloadHash: Buffer
}

/** Readers of the log share the work by organization; the number is fixed, or order would break. */
const shards = 16

export function revisionEvent(revision: Revision, at: Date): Event {
  const { organizationId, by, action, before, after, facts } = revision
  const { object, id: objectId } = resourceOf(revision)
  const header = {
    ...{ action, object, object_id: objectId, actor: by.id, request_id: by.requestId },
    ...facts,
  }
  return eventOf({ organizationId, kind: 'revision', at, header, content: { before, after } })
}

/** How a call to a model ended. `unknown`: its process died before it could say. */
export type CallOutcome = 'completed' | 'cut' | 'failed' | 'unknown'

/** One call to a model, as it is told (card H, enforcement events). Never what was said in it. */
export type CallReport = {
  organizationId: string
  requestId: string
  projectId: string | null
  actor: string
  model: string
  /** Which format it came in. */
  target: string
  outcome: CallOutcome
  /** What it used and cost, as the ledger has it. */
  usage: object
}

export function callEvent(report: CallReport, at: Date): Event {
  const { organizationId, usage } = report
  const header = {
    request_id: report.requestId,
    project_id: report.projectId,
    actor: report.actor,
    model: report.model,
    policy_target: report.target,
    outcome: report.outcome,
  }
  return eventOf({ organizationId, kind: 'enforcement', at, header, content: { usage } })
}

type Told = Pick<Event, 'organizationId' | 'kind' | 'at' | 'header'> & { content: object }

function eventOf({ organizationId, kind, at, header, content }: Told): Event {
  const payload = Buffer.from(JSON.stringify(content))
  const salt = randomBytes(16)
  return {
    ...{ id: createUuid(at), day: at.toISOString().slice(0, 10) },
    ...{ shard: shardOf(organizationId), organizationId, kind, at, header, payload, salt },
    payloadHash: createHash('sha256').update(salt).update(payload).digest(),
  }
}

/** The resource that changed. */
export const resourceOf = ({ before, after }: Revision): Resource => after ?? before

const shardOf = (organizationId: string) =>
  createHash('sha256').update(organizationId).digest().readUInt16BE(0) % shards
