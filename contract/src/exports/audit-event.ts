import { z } from 'zod'

import { adminEndpoint } from '../endpoint.ts'
import { Day, listOf, ListQuery } from '../list.ts'
import { gatewayDecisions } from '../policy-gateway/gateway.ts'
import { AnyId, storedText } from '../text.ts'

const eventTypes = ['enforcement', 'simulation', 'revision'] as const

/** What was done to a resource (docs/specification/audit-events.md#revision-events). */
export const revisionActions = [
  'created',
  'updated',
  'published',
  'paused',
  'resumed',
  'deleted',
  'archived',
  'suspended',
  'reinstated',
  'restored',
  'rolled_back',
  'taken_over',
  'budget_alert',
  'gap',
  'replayed',
  'requeued',
  'signed_in',
  'sign_in_refused',
  'signed_out',
  'ended',
  'glass_broken',
  'kept',
] as const

/** How a call ended (docs/specification/audit-events.md#call-events). */
export const callOutcomes = ['completed', 'cut', 'failed', 'refused', 'blocked', 'unknown'] as const

/** Who may have brought an event about. */
export const actorTypes = [
  'admin_key',
  'project_key',
  'token',
  'member',
  'operator',
  'stripe',
  'gatehouse',
  'anonymous',
] as const

/**
 * What happened, as destinations get it. Which further members an event has depends on what it is about; the `object` of a
 * revision is the kind of the resource that changed.
 */
const AuditEvent = z
  .looseObject({
    id: z.uuid(),
    event_id: z.uuid().describe('The same as `id`, under the name that destinations get.'),
    event_type: z.enum(eventTypes),
    source: z.literal('policy_gateway'),
    created_at: z.iso.datetime({ precision: 3 }),
    org_id: z.string(),
    actor: z
      .string()
      .nullish()
      .describe(
        'Who brought it about: the id of a key or of a member, issuer and subject of a token, operator, stripe or gatehouse.',
      ),
    // Not an enum: a process may read what a newer release has written.
    actor_type: z
      .string()
      .nullish()
      .describe(`What the actor is: ${actorTypes.join(', ')}. Earlier events have none.`),
    project_label: z.string().nullish().describe('The name of the project at the time of a call.'),
    user_id: z
      .string()
      .nullish()
      .describe("The `sub` of a call's token, or the member who owns its key."),
    payload: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('A resource before and after a change, or the usage of a call; null: erased.'),
    payload_hash: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .describe('SHA-256 of salt and payload. It stays when the payload is erased.'),
  })
  .meta({ id: 'AuditEvent' })
export type AuditEvent = z.infer<typeof AuditEvent>

/** A moment in a request. */
export const Moment = z.union([
  z.iso.datetime({
    offset: true,
    error: 'must be a day as in 2026-01-31, or a time as in 2026-01-31T12:00:00Z',
  }),
  Day,
])

/** Which events are meant; all of what is given has to hold. */
const EventFilters = z.object({
  type: z.enum(eventTypes).optional(),
  actor: storedText(1, 1000).optional().describe('Who brought it about, as events say it.'),
  action: z.enum(revisionActions).optional().describe('What was done to a resource.'),
  object_id: AnyId.optional().describe('The resource that changed.'),
  request_id: AnyId.optional().describe('What one request has brought about.'),
  key_id: AnyId.optional().describe('The key that calls were made with.'),
  outcome: z.enum(callOutcomes).optional().describe('How a call ended.'),
  policy_id: AnyId.optional().describe('The policy that decided.'),
  project_id: AnyId.optional(),
  decision: z.enum(gatewayDecisions).optional(),
  from: Moment.optional().describe('The first moment, in RFC 3339; a day is its beginning in UTC.'),
  to: Moment.optional().describe('The moment after the last; a day is its beginning in UTC.'),
})
export type EventQuery = z.output<typeof EventFilters>

export const listAuditEvents = adminEndpoint({
  id: 'listAuditEvents',
  summary: 'List what happened in the organization, the newest first',
  method: 'GET',
  path: '/v1/organization/audit_events',
  permission: 'audit.read',
  query: ListQuery.extend({
    order: z.enum(['asc', 'desc']).default('desc').describe('By time.'),
    ...EventFilters.shape,
  }),
  response: listOf(AuditEvent).meta({ id: 'AuditEventList' }),
  errors: ['invalid_cursor'],
})

/** How many parts a histogram can have. */
export const bucketsMax = 200

const AuditHistogram = z
  .object({
    object: z.literal('organization.audit_histogram'),
    by: z.enum(['minute', 'hour', 'day']),
    data: z
      .array(
        z.object({
          start: z.iso.datetime({ precision: 3 }).describe('When the part begins, in UTC.'),
          count: z.int().min(0),
        }),
      )
      .max(bucketsMax)
      .describe('One item for each part of the range, also where nothing has happened.'),
  })
  .meta({ id: 'AuditHistogram' })

export const readAuditHistogram = adminEndpoint({
  id: 'readAuditHistogram',
  summary: 'Count what happened in the organization, by minute, hour or day',
  method: 'GET',
  path: '/v1/organization/audit_events/histogram',
  permission: 'audit.read',
  query: EventFilters.extend({
    from: Moment.describe('The first moment, in RFC 3339; a day is its beginning in UTC.'),
    to: Moment.describe('The moment after the last. At most 200 parts after the first.'),
    by: z.enum(['minute', 'hour', 'day']).default('hour').describe('How long a part is.'),
  }),
  response: AuditHistogram,
  errors: [],
})
