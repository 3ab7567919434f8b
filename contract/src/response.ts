import { z } from 'zod'

import { inferenceEndpoint, upstreamErrors } from './endpoint.ts'
import {
  AnyObject,
  creditMembers,
  FlaggedCategories,
  Kind,
  listOf,
  Name,
  Temperature,
  Text,
  textOr,
  TokenBudget,
  Tokens,
  TopP,
} from './inference-schema.ts'

const ResponseTool = z.looseObject({ type: Kind })

const isObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The members of an item depend on its type and are validated by its reader. That items are objects is
 * checked outside the union, which would lose the path of an issue.
 */
const Input = textOr(listOf(z.unknown())).superRefine((input, context) => {
  const index = typeof input === 'string' ? -1 : input.findIndex((item) => !isObject(item))
  if (index === -1) return
  context.addIssue({ code: 'custom', path: [index], message: 'must be an object' })
})

/** Open: members that the gateway does not know are passed to an upstream of this format. */
export const CreateResponse = z
  .looseObject({
    model: Name,
    input: Input.nullish(),
    instructions: Text.nullish(),
    stream: z.boolean().nullish(),
    temperature: Temperature.nullish(),
    top_p: TopP.nullish(),
    max_output_tokens: TokenBudget.nullish(),
    tools: listOf(ResponseTool).nullish(),
    tool_choice: z.unknown().optional(),
    parallel_tool_calls: z.boolean().nullish(),
    reasoning: z
      .looseObject({
        effort: Kind.nullish(),
        summary: Kind.nullish(),
        generate_summary: Kind.nullish(),
      })
      .nullish(),
    text: z.looseObject({ format: z.looseObject({ type: Kind }).nullish() }).nullish(),
    include: listOf(Kind).nullish(),
    metadata: AnyObject.nullish(),
    user: z.string().max(10_000).nullish(),
    safety_identifier: z.string().max(10_000).nullish(),
    store: z.boolean().nullish(),
    background: z.boolean().nullish(),
    previous_response_id: Kind.nullish(),
    flagged_categories: FlaggedCategories.nullish(),
  })
  .meta({ id: 'CreateResponse' })
export type CreateResponse = z.infer<typeof CreateResponse>

const ResponseUsage = z.looseObject({
  input_tokens: Tokens,
  input_tokens_details: z.looseObject({ cached_tokens: Tokens }).optional(),
  output_tokens: Tokens,
  output_tokens_details: z.looseObject({ reasoning_tokens: Tokens }).optional(),
  total_tokens: Tokens,
})

const OutputItem = z.looseObject({ type: Kind })

/** The answer without streaming. */
export const Response = z
  .looseObject({
    id: z.string(),
    object: z.literal('response'),
    status: z.string(),
    model: z.string(),
    created_at: z.number().optional(),
    output: z.array(OutputItem),
    usage: ResponseUsage.nullish(),
    ...creditMembers,
  })
  .meta({ id: 'Response' })
export type Response = z.infer<typeof Response>

export const createResponse = inferenceEndpoint({
  id: 'createResponse',
  summary: 'Create a response',
  path: '/v1/responses',
  dialect: 'responses',
  body: CreateResponse,
  response: Response,
  takesFreeRequests: true,
  errors: [...upstreamErrors, 'missing_input', 'unsupported_parameter'],
})
