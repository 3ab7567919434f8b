import type { Turn, TurnMessage } from '#inference/turn.ts'

/**
 * Where the last turn of the assistant begins: its last message, and those before it that are separated
 * from it by answers of tools only. Without a message of the assistant, behind the last message.
 */
export function startOfLastTurn<Message extends { role: string }>(
  messages: readonly Message[],
  isToolAnswer: (message: Message) => boolean,
): number {
  let start = messages.findLastIndex(({ role }) => role === 'assistant')
  if (start === -1) return messages.length
  for (let index = start - 1; index >= 0; index--) {
    const message = messages[index]
    if (!message) break
    if (message.role === 'assistant') start = index
    else if (!isToolAnswer(message)) break
  }
  return start
}

/** The turn without the reasoning of earlier turns, which models do not read again (G4.68). */
export function withoutEarlierReasoning(turn: Turn): Turn {
  const start = startOfLastTurn(turn.messages, isToolAnswer)
  const messages = turn.messages.map((message, index) =>
    index < start ? { ...message, parts: message.parts.filter(isSaid) } : message,
  )
  return { ...turn, messages: messages.filter(({ parts }) => parts.length > 0) }
}

const isSaid = ({ type }: { type: string }) => type !== 'reasoning'

const isToolAnswer = ({ parts }: TurnMessage) =>
  parts.some(({ type }) => type === 'tool_result') &&
  parts.every(({ type }) => type === 'tool_result' || type === 'foreign')
