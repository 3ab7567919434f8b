import { z } from 'zod'

import { gatewayEndpoint } from '../endpoint.ts'
import { listOf, ListQuery } from '../list.ts'
import { changesManaged, createsManaged, exemptFromSets, ManagedBy } from '../managed.ts'
import { AnyId, idOf, trimmedText } from '../text.ts'
import { Moment as GivenMoment } from './audit-event.ts'
import { sinkConfigs, sinkTypes } from './sink-config.ts'

/** RFC 3339 in UTC, to the second. */
const Moment = z.iso.datetime({ precision: 0 })

const SinkType = z.enum(sinkTypes)
const Label = trimmedText(1, 80)

const anyOf = Object.values(sinkConfigs).map((config) => ({
  $ref: `#/components/schemas/${config.meta()?.id}`,
}))

/** Which members it has depends on the type of the sink, so the service validates it and not this schema. */
const Members = z.record(z.string(), z.unknown())

const sinkStates = ['ok', 'retrying', 'error', 'disabled'] as const

/** More dead letters than this are not counted. */
export const deadLettersCounted = 1000

const ExportSink = z
  .object({
    id: idOf('exp'),
    object: z.literal('policy_gateway.export'),
    type: SinkType,
    label: z.string(),
    enabled: z.boolean(),
    config: Members.describe('With the defaults of what was left out. Secrets read as `********`.'),
    managed_by: ManagedBy,
    created_at: Moment,
    updated_at: Moment,
    last_success_at: Moment.nullable().describe('null: nothing was delivered yet.'),
    last_error_at: Moment.nullable(),
    last_error: z
      .string()
      .max(500)
      .nullable()
      .describe('One line without secrets. It stays after a later success.'),
    state: z
      .enum(sinkStates)
      .describe(
        '`retrying`: the destination is away. `error`: somebody has to change the configuration or the destination.',
      ),
    lag_seconds: z.int().min(0).describe('The age of the oldest event that is not delivered.'),
    pending_events: z.int().min(0).describe('How many events are not delivered.'),
    dead_letters: z
      .int()
      .min(0)
      .max(deadLettersCounted)
      .describe(`Events that the destination refused; ${deadLettersCounted} also means more.`),
  })
  .meta({ id: 'ExportSink' })
export type ExportSink = z.infer<typeof ExportSink>

const Answer = z.object({ export: ExportSink }).meta({ id: 'ExportSinkAnswer' })

const ExportCreation = z
  .strictObject({
    type: SinkType,
    label: Label.optional().describe('Default: the type.'),
    enabled: z.boolean().default(true),
    config: Members.meta({ description: 'That of the type.', anyOf }),
  })
  .meta({ id: 'ExportCreation' })

const ExportEdit = z
  .strictObject({
    type: SinkType.optional().describe('Only the type that the sink has.'),
    label: Label.optional(),
    enabled: z.boolean().optional(),
    config: Members.optional().describe(
      'Merged with what is stored: null removes a member, and a secret that is absent or `********` stays.',
    ),
  })
  .refine((edit) => Object.values(edit).some((value) => value !== undefined), {
    error: 'must have at least one of type, label, enabled and config',
  })
  .meta({ id: 'ExportEdit' })

const DeadLetter = z
  .object({
    id: z.uuid().describe('The same as `event_id`.'),
    object: z.literal('policy_gateway.export.dead_letter'),
    event_id: z.uuid(),
    org_seq: z.int().min(1).describe('The number of the event in its organization.'),
    error: z.string().describe('What the destination said, in one line without secrets.'),
    attempts: z.int().min(1),
    created_at: Moment.describe('When the destination refused it for good.'),
  })
  .meta({ id: 'ExportDeadLetter' })
export type DeadLetter = z.infer<typeof DeadLetter>

const exportsPath = '/api/policy-gateway/exports'
const exportPath = `${exportsPath}/:export_id` as const
const params = z.object({ export_id: AnyId })

export const listExports = gatewayEndpoint({
  id: 'listExports',
  summary: 'List the export sinks',
  method: 'GET',
  path: exportsPath,
  permission: 'exports.read',
  query: ListQuery,
  response: listOf(ExportSink).meta({ id: 'ExportSinkList' }),
  errors: ['invalid_cursor'],
})

export const createExport = gatewayEndpoint({
  id: 'createExport',
  summary: 'Create an export sink, which gets every event from now on; nothing is sent yet',
  method: 'POST',
  path: exportsPath,
  permission: 'exports.write',
  ...createsManaged,
  body: ExportCreation,
  response: Answer,
  successStatus: 201,
  errors: ['invalid_export_config', 'limit_reached'],
})

export const retrieveExport = gatewayEndpoint({
  id: 'retrieveExport',
  summary: 'Read an export sink, and how its delivery goes',
  method: 'GET',
  path: exportPath,
  permission: 'exports.read',
  params,
  response: Answer,
  errors: ['export_not_found'],
})

export const updateExport = gatewayEndpoint({
  id: 'updateExport',
  summary: 'Change an export sink; a change of its configuration is tried at once',
  method: 'PATCH',
  path: exportPath,
  permission: 'exports.write',
  ...changesManaged,
  params,
  body: ExportEdit,
  response: Answer,
  errors: ['export_not_found', 'type_immutable', 'invalid_export_config'],
})

export const deleteExport = gatewayEndpoint({
  id: 'deleteExport',
  summary: 'Delete an export sink with its secrets and its dead letters',
  method: 'DELETE',
  path: exportPath,
  permission: 'exports.write',
  ...changesManaged,
  params,
  response: z
    .object({
      id: idOf('exp'),
      object: z.literal('policy_gateway.export.deleted'),
      deleted: z.literal(true),
    })
    .meta({ id: 'DeletedExportSink' }),
  errors: ['export_not_found'],
})

export const testExport = gatewayEndpoint({
  id: 'testExport',
  summary: 'Send one synthetic event to the destination, and say what became of it',
  method: 'POST',
  path: `${exportPath}/test`,
  permission: 'exports.write',
  params,
  isIdempotent: false,
  response: z
    .object({
      delivered: z.boolean(),
      error: z.string().max(500).nullable().describe('One line without secrets; null: delivered.'),
      duration_ms: z.int().min(0),
    })
    .meta({ id: 'ExportTest' }),
  errors: ['export_not_found'],
})

const Sequence = z.int().min(1).nullable().describe('null: no event is in the range.')

export const replayExport = gatewayEndpoint({
  id: 'replayExport',
  summary: 'Deliver events of a range of time once more, beside those that are new',
  method: 'POST',
  path: `${exportPath}/replay`,
  permission: 'exports.write',
  ...exemptFromSets,
  params,
  body: z
    .strictObject({
      from: GivenMoment.describe('The first moment, in RFC 3339; a day is its beginning in UTC.'),
      to: GivenMoment.optional().describe('The moment after the last. Default: now.'),
    })
    .meta({ id: 'ExportReplayRequest' }),
  response: z
    .object({
      replay: z.object({ from_seq: Sequence, to_seq: Sequence, events: z.int().min(0) }),
    })
    .meta({ id: 'ExportReplay' }),
  errors: ['export_not_found', 'limit_reached'],
})

export const listExportDeadLetters = gatewayEndpoint({
  id: 'listExportDeadLetters',
  summary: 'List the events that the destination of an export sink has refused',
  method: 'GET',
  path: `${exportPath}/dead_letters`,
  permission: 'exports.read',
  params,
  query: ListQuery.extend({
    order: z.enum(['asc', 'desc']).default('asc').describe('By the number of the event.'),
  }),
  response: listOf(DeadLetter).meta({ id: 'ExportDeadLetterList' }),
  errors: ['export_not_found', 'invalid_cursor'],
})

export const requeueExportDeadLetters = gatewayEndpoint({
  id: 'requeueExportDeadLetters',
  summary: 'Send refused events once more: those that are named, or the first 100',
  method: 'POST',
  path: `${exportPath}/dead_letters/requeue`,
  permission: 'exports.write',
  ...exemptFromSets,
  params,
  body: z
    .strictObject({ event_ids: z.array(z.uuid()).min(1).max(100).optional() })
    .meta({ id: 'ExportRequeueRequest' }),
  response: z.object({ requeued: z.int().min(0) }).meta({ id: 'ExportRequeue' }),
  errors: ['export_not_found'],
})
