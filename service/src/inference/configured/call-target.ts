import type { CallerFormatName } from '#formats/format-name.ts'

/** What a call is made to: a model, named by the format of the call, or the counter of tokens. */
export type CallTarget = CallerFormatName | 'count_tokens'

/** The names of targets in events, by which export sinks filter. */
export const targetNames = {
  messages: 'messages',
  responses: 'responses',
  chat_completions: 'chat.completions',
  count_tokens: 'messages.count_tokens',
} as const satisfies Record<CallTarget, string>
