import type { Json } from '#inference/answer.ts'

import { startOfLastTurn } from './last-turn.ts'

const countedMembers = [
  ...['messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config'],
] as const

/**
 * A caller's request for an upstream's own counter: nothing but what it counts. The context edits are
 * consumed here (G4.68): without keep all, the thinking of earlier turns does not travel.
 */
export function toMessagesCount(request: Json, model: string, keepsAllThinking: boolean): Json {
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

/** Messages in which nothing but thinking was said are left out with it: empty ones are refused. */
function withoutEarlierThinking(messages: readonly Message[]): Message[] {
  const start = startOfLastTurn(messages, isToolAnswer)
  return messages.flatMap((message, index) => {
    const { role, content } = message
    if (index >= start || role !== 'assistant' || typeof content === 'string') return [message]
    const kept = content.filter((block) => !isThinking(block))
    if (kept.length === content.length) return [message]
    return kept.length === 0 ? [] : [{ ...message, content: kept }]
  })
}

const isThinking = ({ type }: Block) => type === 'thinking' || type === 'redacted_thinking'

const isToolAnswer = ({ content }: Message) =>
  typeof content !== 'string' &&
  content.length > 0 &&
  content.every(({ type }) => type === 'tool_result')
