import type { Turn, TurnMessage } from '#formats/turn.ts'

/**
 * The index where the assistant's last turn starts: its last message and the earlier ones that only tool results
 * and instructions separate from it. Without a message of the assistant, the index after the last message.
 */
export function startOfLastTurn<Message extends { role: string }>(
  messages: readonly Message[],
  isToolResult: (message: Message) => boolean,
): number {
  let start = messages.findLastIndex(({ role }) => role === 'assistant')
  if (start === -1) return messages.length
  for (let index = start - 1; index >= 0; index--) {
    const message = messages[index]
    if (!message) break
    if (message.role === 'assistant') start = index
    else if (message.role !== 'system' && !isToolResult(message)) break
  }
  return start
}

/** The turn without the reasoning of earlier turns, which models do not read again. */
export function withoutEarlierReasoning(turn: Turn): Turn {
  const start = startOfLastTurn(turn.messages, isToolResult)
  const messages = turn.messages.map((message, index) =>
    index < start && message.parts.some(isReasoning)
      ? { ...message, parts: message.parts.filter((part) => !isReasoning(part)) }
      : message,
  )
  return { ...turn, messages: messages.filter(({ parts }) => parts.length > 0) }
}

const isReasoning = ({ type }: { type: string }) => type === 'reasoning'

const isToolResult = ({ parts }: TurnMessage) =>
  parts.some(({ type }) => type === 'tool_result') &&
  parts.every(({ type }) => type === 'tool_result' || type === 'foreign')
