import type { CallerFormatName } from '#formats/format-name.ts'

/** What is called: a model, by the format of the call, or the counter of its tokens. */
export type CallTarget = CallerFormatName | 'count_tokens'

/** The names in events, which sinks filter by. */
export const targetNames = {
  messages: 'messages',
  responses: 'responses',
  chat_completions: 'chat.completions',
  count_tokens: 'messages.count_tokens',
} as const satisfies Record<CallTarget, string>
