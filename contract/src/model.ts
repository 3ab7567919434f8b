import { z } from 'zod'

import { adminBodyLimitBytes, adminEndpoint, type Endpoint } from './endpoint.ts'
import { AnyId } from './text.ts'

const UsdPerMillion = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,6})?$/)
  .describe('US dollars per million tokens, as a decimal number.')

/** OpenAI's clients read `object` and `created`, Anthropic's read `type` and `created_at`. */
export const Model = z
  .object({
    id: z.string(),
    object: z.literal('model'),
    type: z.literal('model'),
    created: z.int(),
    created_at: z.iso.datetime(),
    owned_by: z.string(),
    display_name: z.string(),
    aliases: z.array(z.string()),
    context_tokens: z.int(),
    max_output_tokens: z.int(),
    pricing: z.object({
      input: UsdPerMillion,
      output: UsdPerMillion,
      cached_input: UsdPerMillion,
      cache_write: UsdPerMillion,
    }),
    capabilities: z.object({
      tools: z.boolean(),
      images: z.boolean(),
      documents: z.boolean(),
      reasoning: z.boolean(),
      json_schema: z.boolean(),
    }),
  })
  .meta({ id: 'Model' })
export type Model = z.infer<typeof Model>

const modelRead = {
  method: 'GET',
  dialect: 'openai',
  credentials: ['project_key', 'jwt'],
  permission: 'model.invoke',
  bodyLimitBytes: adminBodyLimitBytes,
  successStatus: 200,
  isIdempotent: false,
} as const

/** The whole catalogue in one page: each vendor's client sends paging parameters of its own, which are ignored. */
const ModelList = z
  .object({
    object: z.literal('list'),
    data: z.array(Model),
    has_more: z.literal(false),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
  })
  .meta({ id: 'ModelList' })

export const listModels = {
  ...modelRead,
  id: 'listModels',
  summary: 'List the models that can be called',
  path: '/v1/models',
  response: ModelList,
  errors: [],
} as const satisfies Endpoint

export const listOrganizationModels = adminEndpoint({
  id: 'listOrganizationModels',
  summary: 'List the models that the projects of the organization can call',
  method: 'GET',
  path: '/v1/organization/models',
  permission: 'projects.read',
  response: ModelList,
  errors: [],
})

export const retrieveModel = {
  ...modelRead,
  id: 'retrieveModel',
  summary: 'Retrieve a model by its id or one of its aliases',
  path: '/v1/models/:model_id',
  params: z.object({ model_id: AnyId }),
  response: Model,
  errors: ['unknown_model'],
} as const satisfies Endpoint
