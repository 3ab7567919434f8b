import { z } from 'zod'

import { inferenceEndpoint } from './endpoint.ts'
import { Name, Tokens } from './inference-schema.ts'
import {
  ContextManagement,
  LenientConversation,
  MessageToolChoice,
  MessageTools,
  OutputConfig,
  SystemPrompt,
  Thinking,
} from './message.ts'

type Issues = z.core.ParsePayload['issues']

const requireType = (input: unknown, issues: Issues) =>
  issues.push({ code: 'invalid_type', expected: 'string', input, path: ['type'] })

const LenientToolChoice = MessageToolChoice.extend({
  type: MessageToolChoice.shape.type.optional().describe('Absent: `tool`, by its `name`.'),
}).check(({ value, issues }) => {
  if (value.type === undefined && value.name === undefined) requireType(value, issues)
})

const LenientThinking = Thinking.extend({
  type: Thinking.shape.type.optional().describe('Absent: `enabled`, with `budget_tokens`.'),
}).check(({ value, issues }) => {
  if (value.type === undefined && typeof value.budget_tokens !== 'number')
    requireType(value, issues)
})

/**
 * Other members of a message request are accepted and ignored. Where the meaning is clear without them, `type` and
 * `role` may be left out (docs/specification/models-and-tokens.md#lenient-members).
 */
export const CountTokens = z
  .looseObject({
    model: Name,
    messages: LenientConversation,
    system: SystemPrompt.optional(),
    tools: MessageTools.optional(),
    tool_choice: LenientToolChoice.nullish(),
    thinking: LenientThinking.nullish(),
    output_config: OutputConfig.nullish(),
    context_management: ContextManagement.nullish().describe(
      'The only edit is `clear_thinking_20251015`, which keeps `all`.',
    ),
  })
  .meta({ id: 'CountTokens' })
export type CountTokens = z.infer<typeof CountTokens>

const CountedTokens = z
  .object({ input_tokens: Tokens.describe('How many tokens the model would read.') })
  .meta({ id: 'CountedTokens' })

export const countTokens = inferenceEndpoint({
  id: 'countTokens',
  summary: 'Count the tokens of a message',
  path: '/v1/messages/count_tokens',
  dialect: 'count_tokens',
  body: CountTokens,
  response: CountedTokens,
  errors: ['unsupported_context_edit', 'unsupported_parameter'],
})
