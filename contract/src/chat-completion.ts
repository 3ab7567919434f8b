import { z } from 'zod'

import { inferenceEndpoint, upstreamErrors } from './endpoint.ts'

/** Nothing in a body can be longer than the body itself (G7.11). */
const Text = z.string().max(32 * 1024 * 1024)
const Name = z.string().min(1).max(256)
/** Some clients keep state of a model in the id of a call. */
const CallId = z.string().min(1).max(65_536)
const AnyObject = z.record(z.string(), z.unknown())
const Penalty = z.number().min(-2).max(2).nullish()
const TokenCount = z.int().min(1).max(1_000_000_000).nullish()

/** The members of each kind are judged where the parts are read, which can name the path of what is wrong. */
const Parts = z.array(z.looseObject({ type: z.string().max(64) })).max(100_000)
const Content = z
  .union([Text, Parts])
  .describe('Text, or parts of the types text, image_url, file, input_audio and refusal.')

const FunctionCall = z.looseObject({ name: Name, arguments: Text })

const Message = z
  .looseObject({
    role: z.enum(['developer', 'system', 'user', 'assistant', 'tool', 'function']),
    content: Content.nullish(),
    name: z.string().max(256).nullish(),
    refusal: Text.nullish(),
    reasoning_content: Text.nullish().describe('What the model thought, as it was answered.'),
    reasoning_signature: Text.nullish().describe(
      'Belongs to reasoning_content; send it back as it came.',
    ),
    tool_calls: z
      .array(
        z.looseObject({
          id: CallId,
          type: z.string().max(64).nullish(),
          function: FunctionCall.nullish(),
        }),
      )
      .max(100_000)
      .nullish(),
    tool_call_id: CallId.nullish(),
    function_call: FunctionCall.nullish(),
  })
  .meta({ id: 'ChatMessage' })

const FunctionDefinition = z.looseObject({
  name: Name,
  description: Text.nullish(),
  parameters: AnyObject.nullish(),
  strict: z.boolean().nullish(),
})

const Tool = z.looseObject({
  type: z.string().max(64),
  function: FunctionDefinition.nullish().describe('Of a tool of the type function.'),
})

const ToolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.looseObject({ type: z.string().max(64) }),
])

const ResponseFormat = z.looseObject({
  type: z.enum(['text', 'json_object', 'json_schema']),
  json_schema: z
    .looseObject({ name: Name, schema: AnyObject.nullish(), strict: z.boolean().nullish() })
    .nullish(),
})

const FlaggedCategory = z.enum(['harassment', 'hate', 'illicit', 'sexual'])

/** A caller's request. It is an open list: what we do not know travels to an upstream of this format (G4.59). */
export const CreateChatCompletion = z
  .looseObject({
    model: Name,
    messages: z.array(Message).min(1).max(100_000),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    n: z.int().min(1).max(128).nullish().describe('Only one choice is offered.'),
    max_completion_tokens: TokenCount,
    max_tokens: TokenCount,
    stop: z.union([Text, z.array(Text).max(4)]).nullish(),
    presence_penalty: Penalty,
    frequency_penalty: Penalty,
    seed: z.int().nullish(),
    user: z.string().max(1024).nullish(),
    tools: z.array(Tool).max(100_000).nullish(),
    tool_choice: ToolChoice.nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    response_format: ResponseFormat.nullish(),
    reasoning_effort: z
      .enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
      .nullish(),
    stream: z.boolean().nullish(),
    stream_options: z
      .looseObject({
        include_usage: z.boolean().nullish(),
        include_obfuscation: z.boolean().nullish(),
      })
      .nullish(),
    functions: z.array(FunctionDefinition).max(100_000).nullish(),
    function_call: z.union([z.enum(['none', 'auto']), z.looseObject({ name: Name })]).nullish(),
    flagged_categories: z
      .array(FlaggedCategory)
      .max(100)
      .nullish()
      .describe('Categories to block beside those that always are.'),
  })
  .meta({ id: 'CreateChatCompletion' })
export type CreateChatCompletion = z.infer<typeof CreateChatCompletion>

const AnsweredMessage = z.looseObject({
  role: z.literal('assistant'),
  content: z.string().nullable(),
  refusal: z.string().nullable(),
  reasoning_content: z.string().optional(),
  reasoning_signature: z.string().optional(),
  tool_calls: z.array(z.looseObject({ id: z.string(), type: z.string() })).optional(),
})

const Choice = z.looseObject({
  index: z.int().min(0),
  message: AnsweredMessage,
  logprobs: AnyObject.nullable(),
  finish_reason: z.string(),
})

const Usage = z.looseObject({
  prompt_tokens: z.int().min(0),
  completion_tokens: z.int().min(0),
  total_tokens: z.int().min(0),
})

/** The plain answer; a streamed one is this in pieces. */
export const ChatCompletion = z
  .looseObject({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: z.int().min(0),
    model: z.string(),
    choices: z.array(Choice),
    usage: Usage,
    remaining_credits: z.int().nullable().describe('The balance after the call.'),
    estimated_credits_used: z.int().min(0),
    estimated_cost_usd: z.number().min(0),
  })
  .meta({ id: 'ChatCompletion' })
export type ChatCompletion = z.infer<typeof ChatCompletion>

export const createChatCompletion = inferenceEndpoint({
  id: 'createChatCompletion',
  summary: 'Ask a model, in the chat completions format',
  path: '/v1/chat/completions',
  dialect: 'openai',
  body: CreateChatCompletion,
  response: ChatCompletion,
  errors: [...upstreamErrors, 'unsupported_parameter'],
})
