import { chatCallerFormat, chatUpstreamFormat } from './chat-completions/chat-completion-format.ts'
import type { CallerFormatName } from './format-name.ts'
import type { CallerFormat, UpstreamFormat, UpstreamFormats } from './format.ts'
import { messageCallerFormat, messageUpstreamFormat } from './messages/message-format.ts'
import { responseCallerFormat, responseUpstreamFormat } from './responses/response-format.ts'

export const callerFormats: Readonly<Record<CallerFormatName, CallerFormat>> = {
  messages: messageCallerFormat,
  responses: responseCallerFormat,
  chat_completions: chatCallerFormat,
}

export const listFormats = (...formats: readonly UpstreamFormat[]): UpstreamFormats =>
  new Map(formats.map((format) => [format.name, format]))

/** Another format for upstreams is one more entry here. */
export const upstreamFormats = listFormats(
  messageUpstreamFormat,
  responseUpstreamFormat,
  chatUpstreamFormat,
)
