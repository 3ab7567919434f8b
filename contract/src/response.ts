import { z } from 'zod'

import { inferenceEndpoint, upstreamErrors } from './endpoint.ts'

const Text = z.string().max(32 * 1024 * 1024)
const Name = z.string().max(200)
const itemsMax = 100_000

const ResponseTool = z.looseObject({ type: Name })

const isObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * What an item must have depends on its type and is checked when it is read (G4.57). The items are
 * looked at outside the union, which would lose the path of an issue.
 */
const Input = z.union([Text, z.array(z.unknown()).max(itemsMax)]).superRefine((input, context) => {
  const index = typeof input === 'string' ? -1 : input.findIndex((item) => !isObject(item))
  if (index === -1) return
  context.addIssue({ code: 'custom', path: [index], message: 'must be an object' })
})

/** The categories a caller may block beyond those that always are (contract 4.10). */
const FlaggedCategory = z.enum(['harassment', 'hate', 'illicit', 'sexual'])

/** What a caller asks of `/v1/responses`. Unknown members travel on to an upstream of this format (G4.59). */
export const CreateResponse = z
  .looseObject({
    model: z.string().min(1).max(200),
    input: Input.nullish(),
    instructions: Text.nullish(),
    stream: z.boolean().nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    max_output_tokens: z.int().min(1).max(1_000_000_000).nullish(),
    tools: z.array(ResponseTool).max(itemsMax).nullish(),
    tool_choice: z.unknown().optional(),
    parallel_tool_calls: z.boolean().nullish(),
    reasoning: z
      .looseObject({
        effort: Name.nullish(),
        summary: Name.nullish(),
        generate_summary: Name.nullish(),
      })
      .nullish(),
    text: z.looseObject({ format: z.looseObject({ type: Name }).nullish() }).nullish(),
    include: z.array(Name).max(itemsMax).nullish(),
    metadata: z.record(z.string().max(1000), z.unknown()).nullish(),
    user: z.string().max(10_000).nullish(),
    safety_identifier: z.string().max(10_000).nullish(),
    store: z.boolean().nullish(),
    background: z.boolean().nullish(),
    previous_response_id: Name.nullish(),
    flagged_categories: z.array(FlaggedCategory).max(100).nullish(),
  })
  .meta({ id: 'CreateResponse' })
export type CreateResponse = z.infer<typeof CreateResponse>

const Tokens = z.int().min(0)

const ResponseUsage = z.looseObject({
  input_tokens: Tokens,
  input_tokens_details: z.looseObject({ cached_tokens: Tokens }).optional(),
  output_tokens: Tokens,
  output_tokens_details: z.looseObject({ reasoning_tokens: Tokens }).optional(),
  total_tokens: Tokens,
})

const OutputItem = z.looseObject({ type: Name })

/** A plain answer (contract 4.11). */
export const Response = z
  .looseObject({
    id: z.string(),
    object: z.literal('response'),
    status: z.string(),
    model: z.string(),
    created_at: z.number().optional(),
    output: z.array(OutputItem),
    usage: ResponseUsage.nullish(),
    remaining_credits: z.int().nullable(),
    estimated_credits_used: z.int(),
    estimated_cost_usd: z.number(),
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
  errors: [...upstreamErrors, 'missing_input', 'unsupported_parameter'],
})
