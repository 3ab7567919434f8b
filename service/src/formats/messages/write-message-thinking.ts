import type { Json } from '#formats/answer.ts'
import type { Turn } from '#formats/turn.ts'

import type { WrittenMessage } from './write-message-parts.ts'

/** Upstreams refuse smaller budgets. */
const budgetMinTokens = 1024

/**
 * The `thinking` setting; null where the caller has none, or where the upstream would refuse it. A forced tool
 * call excludes thinking. A budget must leave tokens for the answer, and is refused after tool calls whose
 * thinking is missing from the conversation.
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
  if (budget < budgetMinTokens || isThinkingMissing(messages)) return null
  return { type: 'enabled', budget_tokens: budget, display }
}

function isThinkingMissing(messages: readonly WrittenMessage[]): boolean {
  const content = messages.findLast(({ role }) => role === 'assistant')?.content ?? []
  const isCalling = content.some(({ type }) => type === 'tool_use')
  const [first] = content
  return isCalling && first?.['type'] !== 'thinking' && first?.['type'] !== 'redacted_thinking'
}
