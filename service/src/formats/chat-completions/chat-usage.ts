import type { Json, Usage } from '#formats/answer.ts'
import { asObject, isObject, listOf, objectOf, tokensOf } from '#formats/json-values.ts'

export function readChatUsage(usage: Json): Usage {
  const input = objectOf(usage['prompt_tokens_details'])
  const output = objectOf(usage['completion_tokens_details'])
  return {
    inputTokens: tokensOf(usage['prompt_tokens']),
    outputTokens: tokensOf(usage['completion_tokens']),
    // Some providers report it beside the total instead of in the details.
    cachedInputTokens: tokensOf(input['cached_tokens'] ?? usage['prompt_cache_hit_tokens']),
    cacheWriteTokens: tokensOf(input['cache_write_tokens']),
    reasoningTokens: tokensOf(output['reasoning_tokens']),
  }
}

export const writeChatUsage = (usage: Usage): Json => ({
  prompt_tokens: usage.inputTokens,
  completion_tokens: usage.outputTokens,
  total_tokens: usage.inputTokens + usage.outputTokens,
  prompt_tokens_details: {
    cached_tokens: usage.cachedInputTokens,
    cache_write_tokens: usage.cacheWriteTokens,
  },
  completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
})

/** A plain answer always has usage; a stream has it when the caller asked for it. */
export const isUsageWanted = (request: Json): boolean =>
  request['stream'] !== true || objectOf(request['stream_options'])['include_usage'] === true

export const hasMediaInChunk = (chunk: Json): boolean =>
  listOf(chunk['choices']).some((choice) => hasMediaIn(objectOf(objectOf(choice)['delta'])))

/** Audio and images are members of the delta, or of the whole message. */
export const hasMediaIn = ({ audio, images }: Json): boolean =>
  isObject(audio) || listOf(images).length > 0

export const usageInChunk = (chunk: Json): Json | undefined => asObject(chunk['usage'])
