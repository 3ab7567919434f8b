import { z } from 'zod'

import { inferenceEndpoint } from './endpoint.ts'
import { Name, Tokens } from './inference-schema.ts'
import {
  ContextManagement,
  Conversation,
  MessageToolChoice,
  MessageTools,
  OutputConfig,
  SystemPrompt,
  Thinking,
} from './message.ts'

/** Other members of a message request are accepted and ignored. */
export const CountTokens = z
  .looseObject({
    model: Name,
    messages: Conversation,
    system: SystemPrompt.optional(),
    tools: MessageTools.optional(),
    tool_choice: MessageToolChoice.nullish(),
    thinking: Thinking.nullish(),
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
