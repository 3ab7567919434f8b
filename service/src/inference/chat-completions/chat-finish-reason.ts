import type { Json, StopReason } from '#inference/answer.ts'
import { asText } from '#inference/untyped.ts'

export type Said = { hasToolCalls: boolean; hasRefusal: boolean }

/** Some upstreams say '' while the answer goes on. */
export const finishReasonOf = (choice: Json): string | undefined =>
  asText(choice['finish_reason']) || undefined

/** Why the model stopped; `stop` alone does not tell what was said before. */
export function readFinishReason(reason: string, said: Said): StopReason {
  switch (reason) {
    case 'length':
      return 'max_tokens'
    case 'content_filter':
      return 'content_filter'
    case 'tool_calls':
    case 'function_call':
      return 'tool_call'
    default:
      if (said.hasToolCalls) return 'tool_call'
      return said.hasRefusal ? 'refusal' : 'end'
  }
}

/** A refusal that was put into words is an ordinary end here; one without words is a filter's. */
export function writeFinishReason(reason: StopReason, said: Pick<Said, 'hasRefusal'>): string {
  switch (reason) {
    case 'max_tokens':
      return 'length'
    case 'tool_call':
      return 'tool_calls'
    case 'content_filter':
      return 'content_filter'
    case 'refusal':
      return said.hasRefusal ? 'stop' : 'content_filter'
    case 'end':
    case 'stop_sequence':
    case 'pause':
      return 'stop'
  }
}
