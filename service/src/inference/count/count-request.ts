import type { Json } from '#formats/answer.ts'

import { startOfLastTurn } from './last-turn.ts'

const countedMembers = [
  'messages',
  'system',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
] as const

/**
 * Builds the request for an upstream's counter from a caller's Messages request, with only the members that affect the
 * count. The context edits are applied here: without `keep: "all"`, the thinking of earlier turns is left out.
 */
export function toCountRequest(request: Json, model: string, keepsAllThinking: boolean): Json {
  const body: Json = { model }
  for (const member of countedMembers) {
    const value = request[member]
    if (value !== undefined && value !== null) body[member] = value
  }
  const messages = request['messages']
  if (!keepsAllThinking && Array.isArray(messages)) {
    body['messages'] = withoutEarlierThinking(messages as Message[])
  }
  return body
}

type Block = { type: string }
type Message = { role: string; content: string | Block[] }

/** Messages that contain only thinking are left out, because upstreams refuse empty messages. */
function withoutEarlierThinking(messages: readonly Message[]): Message[] {
  const start = startOfLastTurn(messages, isToolResult)
  return messages.flatMap((message, index) => {
    const { role, content } = message
    if (index >= start || role !== 'assistant' || typeof content === 'string') return [message]
    const kept = content.filter((block) => !isThinking(block))
    if (kept.length === content.length) return [message]
    return kept.length === 0 ? [] : [{ ...message, content: kept }]
  })
}

const isThinking = ({ type }: Block) => type === 'thinking' || type === 'redacted_thinking'

const isToolResult = ({ content }: Message) =>
  typeof content !== 'string' &&
  content.length > 0 &&
  content.every(({ type }) => type === 'tool_result')
