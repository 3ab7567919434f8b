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

/** Long, because some clients store model state in the id of a tool call. */
const CallId = z.string().min(1).max(65_536)
const Penalty = z.number().min(-2).max(2).nullish()

/** The members of each type are validated by the reader of the parts, which can name the path of an error. */
const Parts = listOf(z.looseObject({ type: Kind }))
const Content = textOr(Parts).describe(
  'Text, or parts of the types text, image_url, file, input_audio and refusal.',
)

const FunctionCall = z.looseObject({ name: Name, arguments: Text })

const Message = z.looseObject({
  role: z.enum(['developer', 'system', 'user', 'assistant', 'tool', 'function']),
  content: Content.nullish(),
  name: z.string().max(256).nullish(),
  refusal: Text.nullish(),
  reasoning_content: Text.nullish().describe('The reasoning of an earlier answer, unchanged.'),
  reasoning_signature: Text.nullish().describe(
    'The signature of reasoning_content, as the answer had it.',
  ),
  tool_calls: listOf(
    z.looseObject({ id: CallId, type: Kind.nullish(), function: FunctionCall.nullish() }),
  ).nullish(),
  tool_call_id: CallId.nullish(),
  function_call: FunctionCall.nullish(),
})

const FunctionDefinition = z.looseObject({
  name: Name,
  description: Text.nullish(),
  parameters: AnyObject.nullish(),
  strict: z.boolean().nullish(),
})

const Tool = z.looseObject({
  type: Kind,
  function: FunctionDefinition.nullish().describe('Required for a tool of the type function.'),
})

const ToolChoice = z.union([z.enum(['none', 'auto', 'required']), z.looseObject({ type: Kind })])

const ResponseFormat = z.looseObject({
  type: z.enum(['text', 'json_object', 'json_schema']),
  json_schema: z
    .looseObject({ name: Name, schema: AnyObject.nullish(), strict: z.boolean().nullish() })
    .nullish(),
})

/** Open: members that the gateway does not know are passed to an upstream of this format. */
export const CreateChatCompletion = z
  .looseObject({
    model: Name,
    messages: listOf(Message, { min: 1 }),
    temperature: Temperature.nullish(),
    top_p: TopP.nullish(),
    n: z.int().min(1).max(128).nullish().describe('Must be 1: the gateway returns one choice.'),
    max_completion_tokens: TokenBudget.nullish(),
    max_tokens: TokenBudget.nullish(),
    stop: textOr(z.array(Text).max(4)).nullish(),
    presence_penalty: Penalty,
    frequency_penalty: Penalty,
    seed: z.int().nullish(),
    user: z.string().max(1024).nullish(),
    tools: listOf(Tool).nullish(),
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
    functions: listOf(FunctionDefinition).nullish(),
    function_call: z.union([z.enum(['none', 'auto']), z.looseObject({ name: Name })]).nullish(),
    flagged_categories: FlaggedCategories.nullish(),
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
  prompt_tokens: Tokens,
  completion_tokens: Tokens,
  total_tokens: Tokens,
})

/** The answer without streaming; a stream is the same in chunks. */
export const ChatCompletion = z
  .looseObject({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: z.int().min(0),
    model: z.string(),
    choices: z.array(Choice),
    usage: Usage,
    ...creditMembers,
  })
  .meta({ id: 'ChatCompletion' })
export type ChatCompletion = z.infer<typeof ChatCompletion>

export const createChatCompletion = inferenceEndpoint({
  id: 'createChatCompletion',
  summary: 'Create a chat completion',
  path: '/v1/chat/completions',
  dialect: 'openai',
  body: CreateChatCompletion,
  response: ChatCompletion,
  errors: [...upstreamErrors, 'unsupported_parameter'],
})
