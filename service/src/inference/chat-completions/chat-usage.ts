import type { Json, Usage } from '#inference/answer.ts'

import { objectOf } from './json-member.ts'

const mostTokens = 1e9

/** An impossible figure counts as none at all: it would become somebody's bill. */
const countOf = (value: unknown): number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= mostTokens
    ? value
    : 0

export function readUsage(usage: Json): Usage {
  const input = objectOf(usage['prompt_tokens_details'])
  const output = objectOf(usage['completion_tokens_details'])
  return {
    inputTokens: countOf(usage['prompt_tokens']),
    outputTokens: countOf(usage['completion_tokens']),
    // Some providers say it beside the total instead of in the details.
    cachedInputTokens: countOf(input?.['cached_tokens'] ?? usage['prompt_cache_hit_tokens']),
    cacheWriteTokens: countOf(input?.['cache_write_tokens']),
    reasoningTokens: countOf(output?.['reasoning_tokens']),
  }
}

export const writeUsage = (usage: Usage): Json => ({
  prompt_tokens: usage.inputTokens,
  completion_tokens: usage.outputTokens,
  total_tokens: usage.inputTokens + usage.outputTokens,
  prompt_tokens_details: {
    cached_tokens: usage.cachedInputTokens,
    cache_write_tokens: usage.cacheWriteTokens,
  },
  completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
})

/** A plain answer always has usage; a stream has it when its caller asked. */
export const isUsageWanted = (request: Json): boolean =>
  request['stream'] !== true || objectOf(request['stream_options'])?.['include_usage'] === true
