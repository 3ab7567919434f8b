import { z } from 'zod'

import { gatewayEndpoint } from '../endpoint.ts'
import { secretMask, WebhookSecret } from '../exports/sink-config.ts'
import { listOf, ListQuery } from '../list.ts'
import { changesManaged, createsManaged, ManagedBy } from '../managed.ts'
import { AnyId, idOf, storedText, trimmedText } from '../text.ts'
import { glassBody, glassQuery } from '../two-persons/break-glass.ts'
import { Moment } from './gateway.ts'

const Mode = z
  .enum(['monitoring', 'enforcing'])
  .describe(
    '`monitoring`: it blocks and rewrites nothing, and events have what it would have done.',
  )
const OnError = z
  .enum(['refuse', 'allow'])
  .describe('What happens to a text about which it does not answer as it should.')
const DeadlineMs = z.int().min(100).max(5000).describe('How long it may take to answer.')

export const Guardrail = z
  .object({
    id: idOf('grd'),
    object: z.literal('policy_gateway.guardrail'),
    name: z.string(),
    url: z.string(),
    secret: z.literal(secretMask),
    enabled: z.boolean(),
    mode: Mode,
    on_error: OnError,
    deadline_ms: DeadlineMs,
    project_ids: z.array(z.string()).nullable().describe('null: every project.'),
    managed_by: ManagedBy,
    created_at: Moment,
    updated_at: Moment,
  })
  .meta({ id: 'Guardrail' })
export type Guardrail = z.infer<typeof Guardrail>

const Answer = z.object({ guardrail: Guardrail }).meta({ id: 'GuardrailAnswer' })

const Name = trimmedText(1, 80).describe(
  'Unique in the organization. Callers see it where the guardrail blocks.',
)
/** Where it may lead to is checked when it is saved, and again with every question. */
const Url = z
  .string()
  .max(2048)
  .regex(/^https?:\/\//i, { error: 'must be an address such as https://guard.example.com/check' })
const ProjectIds = z
  .array(AnyId)
  .min(1)
  .max(100)
  .refine((ids) => new Set(ids).size === ids.length, { error: 'must not have an id twice' })
  .nullable()
  .describe('Active projects of the organization; null: every project, and calls without one.')

const created = {
  name: Name,
  url: Url,
  secret: WebhookSecret,
  enabled: z.boolean().default(true),
  mode: Mode.default('monitoring'),
  on_error: OnError.default('refuse'),
  deadline_ms: DeadlineMs.default(2000),
  project_ids: ProjectIds.default(null),
}
/** A guardrail as it is proposed. */
export const NewGuardrail = z.strictObject(created).meta({ id: 'NewGuardrail' })
export type NewGuardrail = z.output<typeof NewGuardrail>

const GuardrailCreation = glassBody(created).meta({ id: 'GuardrailCreation' })

const changed = {
  name: Name.optional(),
  url: Url.optional().describe('At another scheme, host or port, `secret` is required too.'),
  secret: WebhookSecret.or(z.literal(secretMask))
    .optional()
    .describe('Absent or `********`: what is stored stays.'),
  enabled: z.boolean().optional(),
  mode: Mode.optional(),
  on_error: OnError.optional(),
  deadline_ms: DeadlineMs.optional(),
  project_ids: ProjectIds.optional(),
}
const changesSomething = (edit: Record<string, unknown>) =>
  Object.keys(changed).some((name) => edit[name] !== undefined)
const nothingChanged = { error: 'must have at least one member' }

/** A change of a guardrail as it is proposed. */
export const GuardrailChange = z
  .strictObject(changed)
  .refine(changesSomething, nothingChanged)
  .meta({ id: 'GuardrailChange' })

const GuardrailEdit = glassBody(changed)
  .refine(changesSomething, nothingChanged)
  .meta({ id: 'GuardrailEdit' })
export type GuardrailChange = z.output<typeof GuardrailChange>

const guardrailsPath = '/api/policy-gateway/guardrails'
const guardrailPath = `${guardrailsPath}/:guardrail_id` as const
const params = z.object({ guardrail_id: AnyId })

export const listGuardrails = gatewayEndpoint({
  id: 'listGuardrails',
  summary: 'List the guardrails: webhooks that decide about texts',
  method: 'GET',
  path: guardrailsPath,
  permission: 'policy_gateway.read',
  query: ListQuery,
  response: listOf(Guardrail).meta({ id: 'GuardrailList' }),
  errors: ['invalid_cursor'],
})

export const createGuardrail = gatewayEndpoint({
  id: 'createGuardrail',
  summary: 'Create a guardrail; if it is enabled, it is asked about calls within seconds',
  method: 'POST',
  path: guardrailsPath,
  permission: 'policy_gateway.write',
  ...createsManaged,
  body: GuardrailCreation,
  response: Answer,
  successStatus: 201,
  errors: ['unknown_project', 'guardrail_name_taken', 'limit_reached', 'approval_required'],
})

export const retrieveGuardrail = gatewayEndpoint({
  id: 'retrieveGuardrail',
  summary: 'Read a guardrail',
  method: 'GET',
  path: guardrailPath,
  permission: 'policy_gateway.read',
  params,
  response: Answer,
  errors: ['guardrail_not_found'],
})

export const updateGuardrail = gatewayEndpoint({
  id: 'updateGuardrail',
  summary: 'Change a guardrail',
  method: 'PATCH',
  path: guardrailPath,
  permission: 'policy_gateway.write',
  ...changesManaged,
  params,
  body: GuardrailEdit,
  response: Answer,
  errors: ['guardrail_not_found', 'unknown_project', 'guardrail_name_taken', 'approval_required'],
})

export const deleteGuardrail = gatewayEndpoint({
  id: 'deleteGuardrail',
  summary: 'Delete a guardrail with its secret; no call is checked by it within seconds',
  method: 'DELETE',
  path: guardrailPath,
  permission: 'policy_gateway.write',
  ...changesManaged,
  params,
  query: glassQuery(changesManaged.query.shape),
  response: z
    .object({
      id: idOf('grd'),
      object: z.literal('policy_gateway.guardrail.deleted'),
      deleted: z.literal(true),
    })
    .meta({ id: 'DeletedGuardrail' }),
  errors: ['guardrail_not_found', 'approval_required', 'missing_field'],
})

export const testGuardrail = gatewayEndpoint({
  id: 'testGuardrail',
  summary: 'Ask a guardrail about one text, marked as a test, and say what it answers',
  method: 'POST',
  path: `${guardrailPath}/test`,
  permission: 'policy_gateway.write',
  params,
  isIdempotent: false,
  body: z
    .strictObject({
      text: storedText(1, 2000).optional().describe('Default: a sentence that says it is a test.'),
    })
    .meta({ id: 'GuardrailTestRequest' }),
  response: z
    .object({
      ok: z.boolean().describe('Whether it has answered as it should, whatever its action.'),
      action: z.enum(['allow', 'block', 'rewrite']).nullable(),
      code: z.string().max(64).nullable(),
      reason: z.string().max(1000).nullable(),
      took_ms: z.int().min(0),
      error: z.string().max(500).nullable().describe('One line without secrets; null: it is ok.'),
    })
    .meta({ id: 'GuardrailTest' }),
  errors: ['guardrail_not_found'],
})
