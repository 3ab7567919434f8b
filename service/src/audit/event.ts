import { hash, randomFillSync } from 'node:crypto'

import { BoundedMap } from '#platform/bounded-map.ts'
import { createUuid } from '#platform/id.ts'

/** What was done to a resource of an organization (docs/specification/audit-events.md#revision-events). */
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

/** Who made a change: the id of a key, `operator` or `stripe`; and the request, if it came with one. */
export type Actor = { readonly id: string; readonly requestId: string | null }

/** The key that called an endpoint. */
export const callerOf = (call: {
  principal: { credentialId: string }
  requestId: string
}): Actor => ({
  id: call.principal.credentialId,
  requestId: call.requestId,
})

export const operator: Actor = { id: 'operator', requestId: null }

export const stripeActor = (requestId: string): Actor => ({ id: 'stripe', requestId })

/** A resource as the API shows it, so without secrets. */
type Resource = { readonly id: string; readonly object: string }

/** A change of a resource: `before` is null for a new one, `after` for a deleted one. */
export type Revision = {
  organizationId: string
  by: Actor
  action: RevisionAction
  /** Further members of the header, which sinks can filter by. */
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

/** Readers divide the log by shard. The number is fixed: an organization must never change its shard. */
const shardCount = 16

export function buildRevisionEvent(revision: Revision, at: Date): Event {
  const { organizationId, by, action, before, after, facts } = revision
  const { object, id: objectId } = resourceOf(revision)
  const header = {
    action,
    object,
    object_id: objectId,
    actor: by.id,
    request_id: by.requestId,
    ...facts,
  }
  return buildEvent({ organizationId, kind: 'revision', at, header, content: { before, after } })
}

/** How a call to a model ended. `refused`: it was not sent to one. `unknown`: its process died first. */
export type CallOutcome = 'completed' | 'cut' | 'failed' | 'refused' | 'unknown'

/** Under this name are the events of callers who belong to no organization. No organization has such an id. */
export const operatorOrganizationId = 'operator'

/** A call to a model (docs/specification/audit-events.md#call-events), without prompts and answers. */
export type CallReport = {
  organizationId: string
  requestId: string
  projectId: string | null
  actor: string
  /** Null if the request does not name one that exists. */
  model: string | null
  /** The caller's format. */
  target: string
  outcome: CallOutcome
  /** Why a call was refused: the status and the code of its answer. */
  refusal?: { status: number; code: string }
  /** The `meta` of its ledger entry, and the credits. */
  usage: object
}

export function buildCallEvent(report: CallReport, at: Date): Event {
  const { organizationId, usage } = report
  const header = {
    request_id: report.requestId,
    project_id: report.projectId,
    actor: report.actor,
    model: report.model,
    policy_target: report.target,
    outcome: report.outcome,
    ...report.refusal,
  }
  return buildEvent({ organizationId, kind: 'enforcement', at, header, content: { usage } })
}

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

const saltBytes = 16
const salts = Buffer.alloc(saltBytes * 128)
let nextSalt = salts.length

/** Random bytes for one event; the generator makes those of many at a time. */
function takeSalt(): Buffer {
  if (nextSalt === salts.length) {
    randomFillSync(salts)
    nextSalt = 0
  }
  return salts.subarray(nextSalt, (nextSalt += saltBytes))
}

/** The resource that changed. */
export const resourceOf = ({ before, after }: Revision): Resource => after ?? before

/** Of the organizations that have events at the moment. */
const knownShards = new BoundedMap<string, number>(10_000)

function shardOf(organizationId: string): number {
  const known = knownShards.get(organizationId)
  if (known !== undefined) return known
  const shard = hash('sha256', organizationId, 'buffer').readUInt16BE(0) % shardCount
  knownShards.set(organizationId, shard)
  return shard
}
