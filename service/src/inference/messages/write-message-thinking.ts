import type { Json } from '#inference/answer.ts'
import type { Turn } from '#inference/turn.ts'

import type { WrittenMessage } from './write-message-parts.ts'

/** Smaller budgets are refused. */
const budgetMinTokens = 1024

/**
 * How much the model shall think; null where that is not said, or where saying it would be refused. A
 * forced tool call excludes thinking; a budget must leave room for an answer, and must not be asked for
 * in the middle of tool calls whose thinking has been lost.
 */
export function writeThinking(
  { reasoning, toolChoice, tools }: Turn,
  messages: readonly WrittenMessage[],
  maxTokens: number,
): Json | null {
  if (!reasoning) return null
  if (reasoning.effort === 'none') return { type: 'disabled' }
  const isForced = toolChoice?.type === 'required' || toolChoice?.type === 'tool'
  if (isForced && tools.length > 0) return null
  const display = reasoning.isSummaryWanted ? 'summarized' : 'omitted'
  if (reasoning.budgetTokens === null) return { type: 'adaptive', display }
  const budget = Math.min(reasoning.budgetTokens, maxTokens - 1)
  if (budget < budgetMinTokens || hasLostThinking(messages)) return null
  return { type: 'enabled', budget_tokens: budget, display }
}

function hasLostThinking(messages: readonly WrittenMessage[]): boolean {
  const content = messages.findLast(({ role }) => role === 'assistant')?.content ?? []
  const isCalling = content.some(({ type }) => type === 'tool_use')
  const [first] = content
  return isCalling && first?.['type'] !== 'thinking' && first?.['type'] !== 'redacted_thinking'
}
