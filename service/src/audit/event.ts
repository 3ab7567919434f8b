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

/** Who did it: the id of a key, or `operator`; with the request it came in, if one did. */
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
  kind: 'revision'
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
  const payload = Buffer.from(JSON.stringify({ before, after }))
  const salt = randomBytes(16)
  return {
    id: createUuid(at),
    day: at.toISOString().slice(0, 10),
    shard: shardOf(organizationId),
    organizationId,
    kind: 'revision',
    at,
    header: {
      action,
      object,
      object_id: objectId,
      actor: by.id,
      request_id: by.requestId,
      ...facts,
    },
    payload,
    salt,
    payloadHash: createHash('sha256').update(salt).update(payload).digest(),
  }
}

/** The resource that changed. */
export const resourceOf = ({ before, after }: Revision): Resource => after ?? before

const shardOf = (organizationId: string) =>
  createHash('sha256').update(organizationId).digest().readUInt16BE(0) % shards
