import { chatCompletions } from './chat-completions/chat-completion-protocol.ts'
import { messages } from './messages/message-protocol.ts'
import type { Protocol } from './protocol.ts'
import { responses } from './responses/response-protocol.ts'
import type { ProtocolName } from './turn.ts'

/** The wire formats, by name. */
export const protocols: Readonly<Record<ProtocolName, Protocol>> = {
  messages,
  responses,
  chat_completions: chatCompletions,
}
