import { z } from 'zod'

import { inferenceBodyLimitBytes, inferenceEndpoint, upstreamErrors } from './endpoint.ts'

const Text = z.string().max(inferenceBodyLimitBytes)
const Name = z.string().min(1).max(1000)
const MediaType = z.string().max(200)
const tokensMax = 2_147_483_647

/** No list of an open request may be longer; far more than any model reads. */
const listMax = 100_000
const listOf = <Item extends z.ZodType>(item: Item) => z.array(item).max(listMax)

/** JSON whose shape is the model's affair. Checked nine times faster than a record. */
const AnyObject = z.looseObject({})

/**
 * Text, or a list of blocks. A plain union would blame the member as a whole; here the value's own type
 * chooses the branch, so that an issue leads to the very block. Zod forgets this when the schema is
 * copied: add what else there is to say (`meta`, checks) to the parts or to what stands around it.
 */
function textOr<List extends z.ZodArray>(list: List) {
  const either = z.union([Text, list])
  const chosen: typeof either._zod.parse = (payload, context) => {
    if (typeof payload.value === 'string') return Text._zod.run(payload, context) as typeof payload
    if (Array.isArray(payload.value)) return list._zod.run(payload, context) as typeof payload
    payload.issues.push({
      code: 'invalid_type',
      expected: 'string or array' as 'string',
      input: payload.value,
      inst: either,
    })
    return payload
  }
  either._zod.parse = chosen
  either._zod.run = chosen
  return either
}

const TextBlock = z.looseObject({ type: z.literal('text'), text: Text })

const base64Source = z.looseObject({
  type: z.literal('base64'),
  media_type: MediaType,
  data: Text,
})
const urlSource = z.looseObject({ type: z.literal('url'), url: Text })
const fileSource = z.looseObject({ type: z.literal('file'), file_id: Name })

const ImageBlock = z.looseObject({
  type: z.literal('image'),
  source: z.discriminatedUnion('type', [base64Source, urlSource, fileSource]),
})

const DocumentBlock = z.looseObject({
  type: z.literal('document'),
  source: z.discriminatedUnion('type', [
    base64Source,
    urlSource,
    fileSource,
    z.looseObject({ type: z.literal('text'), data: Text }),
    z.looseObject({
      type: z.literal('content'),
      content: textOr(listOf(z.discriminatedUnion('type', [TextBlock, ImageBlock]))),
    }),
  ]),
  title: Text.nullish(),
})

const SearchResultBlock = z.looseObject({
  type: z.literal('search_result'),
  source: Text,
  title: Text,
  content: listOf(TextBlock),
})

const ToolUseBlock = z.looseObject({
  type: z.literal('tool_use'),
  id: Name,
  name: Name,
  input: AnyObject,
})

/** What a tool may answer with that only the model's own provider understands. */
const ToolReferenceBlock = z.looseObject({ type: z.enum(['tool_reference', 'browser_state']) })

const ToolResultBlock = z.looseObject({
  type: z.literal('tool_result'),
  tool_use_id: Name,
  content: textOr(
    listOf(
      z.discriminatedUnion('type', [
        TextBlock,
        ImageBlock,
        DocumentBlock,
        SearchResultBlock,
        ToolReferenceBlock,
      ]),
    ),
  ).optional(),
  is_error: z.boolean().nullish(),
})

const ThinkingBlock = z.looseObject({
  type: z.literal('thinking'),
  thinking: Text,
  signature: Text.optional(),
})

const RedactedThinkingBlock = z.looseObject({ type: z.literal('redacted_thinking'), data: Text })

/** What a provider did by itself: it travels to a provider of the same format and is left out elsewhere. */
const ProviderBlock = z.looseObject({
  type: z.enum([
    'server_tool_use',
    'web_search_tool_result',
    'web_fetch_tool_result',
    'code_execution_tool_result',
    'bash_code_execution_tool_result',
    'text_editor_code_execution_tool_result',
    'tool_search_tool_result',
    'advisor_tool_result',
    'mcp_tool_use',
    'mcp_tool_result',
    'mcp_tool_listing',
    'container_upload',
    'compaction',
    'fallback',
  ]),
})

const ContentBlock = z
  .discriminatedUnion('type', [
    TextBlock,
    ImageBlock,
    DocumentBlock,
    SearchResultBlock,
    ToolUseBlock,
    ToolResultBlock,
    ThinkingBlock,
    RedactedThinkingBlock,
    ProviderBlock,
  ])
  .meta({ id: 'MessageContentBlock' })
export type ContentBlock = z.infer<typeof ContentBlock>

const MessageParam = z.looseObject({
  role: z.enum(['user', 'assistant']),
  content: textOr(listOf(ContentBlock)),
})
export type MessageParam = z.infer<typeof MessageParam>

/** The conversation. Only the last message may be empty, and only the assistant's (G2.62). */
export const Conversation = listOf(MessageParam)
  .min(1)
  .check(({ value, issues }) => {
    const index = value.findIndex(({ content }) => content.length === 0)
    const empty = value[index]
    if (!empty || (index === value.length - 1 && empty.role === 'assistant')) return
    issues.push({
      code: 'too_small',
      origin: typeof empty.content === 'string' ? 'string' : 'array',
      minimum: 1,
      inclusive: true,
      input: empty.content,
      path: [index, 'content'],
    })
  })

export const SystemPrompt = textOr(listOf(TextBlock))

const MessageTool = z
  .looseObject({
    type: Name.nullish().describe('Absent or `custom`, or the dated name of a provider tool.'),
    name: Name.optional(),
    description: Text.nullish(),
    input_schema: AnyObject.optional(),
    strict: z.boolean().nullish(),
  })
  .check(({ value, issues }) => {
    if (!isCustomTool(value)) return
    const missing = value.name === undefined ? 'name' : 'input_schema'
    if (value[missing] !== undefined) return
    const expected = missing === 'name' ? 'string' : 'object'
    issues.push({ code: 'invalid_type', expected, input: undefined, path: [missing] })
  })

/** A tool that the caller runs. */
export const isCustomTool = ({ type }: { type?: string | null | undefined }) =>
  type === undefined || type === null || type === 'custom'

export const MessageTools = listOf(MessageTool)

export const MessageToolChoice = z.looseObject({
  type: z.enum(['auto', 'any', 'tool', 'none']),
  name: Name.optional().describe('With `tool`: the one to call.'),
  disable_parallel_tool_use: z.boolean().nullish(),
})

/** The kinds are an open list: clients send new ones before we know them. */
export const Thinking = z.looseObject({
  type: Name.describe('`enabled`, `adaptive` or `disabled`.'),
  budget_tokens: z.int().min(1).max(tokensMax).nullish(),
  display: Name.nullish(),
})

export const OutputConfig = z.looseObject({
  effort: Name.nullish().describe('`low`, `medium`, `high`, `xhigh` or `max`.'),
  format: z.looseObject({ type: z.literal('json_schema'), schema: AnyObject }).nullish(),
})

export const ContextManagement = z.looseObject({
  edits: listOf(z.looseObject({ type: Name })).nullish(),
})

const FlaggedCategory = z.enum(['harassment', 'hate', 'illicit', 'sexual'])

/** Open: members we do not know travel to a provider of the same format (G4.47). */
export const CreateMessage = z
  .looseObject({
    model: Name,
    messages: Conversation,
    max_tokens: z.int().min(1).max(tokensMax).optional(),
    system: SystemPrompt.optional(),
    temperature: z.number().min(0).max(2).optional(),
    top_p: z.number().min(0).max(1).optional(),
    top_k: z.int().min(0).max(tokensMax).optional(),
    stop_sequences: listOf(Text).optional(),
    stream: z.boolean().optional(),
    metadata: z.looseObject({ user_id: Text.nullish() }).nullish(),
    thinking: Thinking.nullish(),
    tools: MessageTools.optional(),
    tool_choice: MessageToolChoice.nullish(),
    output_config: OutputConfig.nullish(),
    context_management: ContextManagement.nullish(),
    flagged_categories: listOf(FlaggedCategory)
      .optional()
      .describe('Categories to block besides those that always are.'),
  })
  .meta({ id: 'CreateMessage' })
export type CreateMessage = z.infer<typeof CreateMessage>

const Tokens = z.int().min(0)

export const Message = z
  .looseObject({
    id: z.string(),
    type: z.literal('message'),
    role: z.literal('assistant'),
    model: z.string(),
    content: z.array(z.looseObject({ type: z.string() })),
    stop_reason: z.string().nullable(),
    stop_sequence: z.string().nullable(),
    usage: z.looseObject({
      input_tokens: Tokens,
      output_tokens: Tokens,
      cache_creation_input_tokens: Tokens,
      cache_read_input_tokens: Tokens,
    }),
    remaining_credits: z.int().nullable().describe('The balance after the call.'),
    estimated_credits_used: z.int().min(0),
    estimated_cost_usd: z.number().min(0),
  })
  .meta({ id: 'Message' })

export const createMessage = inferenceEndpoint({
  id: 'createMessage',
  summary: 'Create a message',
  path: '/v1/messages',
  dialect: 'messages',
  body: CreateMessage,
  response: Message,
  errors: [...upstreamErrors],
})
