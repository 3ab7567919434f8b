import { z } from 'zod'

import { inferenceEndpoint, upstreamErrors } from './endpoint.ts'
import {
  AnyObject,
  creditMembers,
  FlaggedCategories,
  listOf,
  Name,
  Temperature,
  Text,
  textOr,
  TokenBudget,
  Tokens,
  tokensMax,
  TopP,
} from './inference-schema.ts'
import { ContentBlock, TextBlock } from './message-content.ts'

const MessageParam = z.looseObject({
  role: z
    .enum(['user', 'assistant', 'system'])
    .describe('`system`: instructions in their place in the conversation, as text.'),
  content: textOr(listOf(ContentBlock)),
})
export type MessageParam = z.infer<typeof MessageParam>

/** A message whose author may be missing, which then is the user. */
const AnyMessageParam = MessageParam.extend({ role: MessageParam.shape.role.optional() })

type ConversationPayload = z.core.ParsePayload<z.infer<typeof AnyMessageParam>[]>

/** A prefill may be empty, which is the assistant's last message, and so may instructions that only change settings. */
function refuseEmpty({ value, issues }: ConversationPayload) {
  const index = value.findIndex(
    ({ role, content, output_config: settings }, position) =>
      content.length === 0 &&
      !(role === 'assistant' && position === value.length - 1) &&
      !(role === 'system' && typeof settings === 'object' && settings !== null),
  )
  const empty = value[index]
  if (!empty) return
  issues.push({
    code: 'too_small',
    origin: typeof empty.content === 'string' ? 'string' : 'array',
    minimum: 1,
    inclusive: true,
    input: empty.content,
    path: [index, 'content'],
  })
}

/** Instructions are text, as in `system`. */
function refuseOtherInstructions({ value, issues }: ConversationPayload) {
  for (const [index, { role, content }] of value.entries()) {
    if (role !== 'system' || typeof content === 'string') continue
    const position = content.findIndex(({ type }) => type !== 'text')
    if (position === -1) continue
    const path = [index, 'content', position, 'type']
    issues.push({
      code: 'invalid_value',
      values: ['text'],
      input: content[position]?.type,
      path,
    })
    return
  }
}

const Messages = listOf(MessageParam, { min: 1 })
const AnyMessages = listOf(AnyMessageParam, { min: 1 })
const Conversation = Messages.check(refuseEmpty, refuseOtherInstructions).meta({
  ...Messages.meta(),
})
export const LenientConversation = AnyMessages.check(refuseEmpty, refuseOtherInstructions).meta({
  ...AnyMessages.meta(),
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

/** Whether the caller runs the tool, not the provider. */
export const isCustomTool = ({ type }: { type?: string | null | undefined }) =>
  type === undefined || type === null || type === 'custom'

export const MessageTools = listOf(MessageTool)

export const MessageToolChoice = z.looseObject({
  type: z.enum(['auto', 'any', 'tool', 'none']),
  name: Name.optional().describe('With `tool`: the one to call.'),
  disable_parallel_tool_use: z.boolean().nullish(),
})

/** `type` is an open enumeration: clients may send values that the gateway does not know yet. */
export const Thinking = z.looseObject({
  type: Name.describe('`enabled`, `adaptive` or `disabled`.'),
  budget_tokens: TokenBudget.nullish(),
  display: Name.nullish(),
})

export const OutputConfig = z.looseObject({
  effort: Name.nullish().describe('`low`, `medium`, `high`, `xhigh` or `max`.'),
  format: z.looseObject({ type: z.literal('json_schema'), schema: AnyObject }).nullish(),
})

export const ContextManagement = z.looseObject({
  edits: listOf(z.looseObject({ type: Name })).nullish(),
})

/** Open: members that the gateway does not know are passed to an upstream of this format. */
export const CreateMessage = z
  .looseObject({
    model: Name,
    messages: Conversation,
    max_tokens: TokenBudget.optional(),
    system: SystemPrompt.optional(),
    temperature: Temperature.optional(),
    top_p: TopP.optional(),
    top_k: z.int().min(0).max(tokensMax).optional(),
    stop_sequences: listOf(Text).optional(),
    stream: z.boolean().optional(),
    metadata: z.looseObject({ user_id: Text.nullish() }).nullish(),
    thinking: Thinking.nullish(),
    tools: MessageTools.optional(),
    tool_choice: MessageToolChoice.nullish(),
    output_config: OutputConfig.nullish(),
    context_management: ContextManagement.nullish(),
    flagged_categories: FlaggedCategories.optional(),
  })
  .meta({ id: 'CreateMessage' })
export type CreateMessage = z.infer<typeof CreateMessage>

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
    ...creditMembers,
  })
  .meta({ id: 'Message' })

export const createMessage = inferenceEndpoint({
  id: 'createMessage',
  summary: 'Create a message',
  path: '/v1/messages',
  dialect: 'messages',
  body: CreateMessage,
  response: Message,
  takesFreeRequests: true,
  errors: [...upstreamErrors, 'unsupported_parameter'],
})
