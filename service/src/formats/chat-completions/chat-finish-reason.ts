import type { Json, StopReason } from '#formats/answer.ts'
import { asText } from '#formats/json-values.ts'

/** What an answer has contained so far. */
export type Content = { hasToolCalls: boolean; hasRefusal: boolean }

/** Some upstreams send '' while the answer goes on. */
export const finishReasonOf = (choice: Json): string | undefined =>
  asText(choice['finish_reason']) || undefined

/** `stop` is also sent after tool calls and refusals, so the content decides. */
export function readFinishReason(reason: string, content: Content): StopReason {
  switch (reason) {
    case 'length':
      return 'max_tokens'
    case 'content_filter':
      return 'content_filter'
    case 'tool_calls':
    case 'function_call':
      return 'tool_call'
    default:
      if (content.hasToolCalls) return 'tool_call'
      return content.hasRefusal ? 'refusal' : 'end'
  }
}

/** A refusal with text ends with `stop` in this format; one without text is reported as a content filter. */
export function writeFinishReason(
  reason: StopReason,
  content: Pick<Content, 'hasRefusal'>,
): string {
  switch (reason) {
    case 'max_tokens':
      return 'length'
    case 'tool_call':
      return 'tool_calls'
    case 'content_filter':
      return 'content_filter'
    case 'refusal':
      return content.hasRefusal ? 'stop' : 'content_filter'
    case 'end':
    case 'stop_sequence':
    case 'pause':
      return 'stop'
  }
}
