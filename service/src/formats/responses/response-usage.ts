import type { Json, Usage } from '#formats/answer.ts'
import { asObject, asText, listOf, objectOf, tokensOf } from '#formats/json-values.ts'

export function readUsage(response: Json): Usage {
  const usage = objectOf(response['usage'])
  const input = objectOf(usage['input_tokens_details'])
  const output = objectOf(usage['output_tokens_details'])
  const { web_search: search } = objectOf(response['tool_usage'])
  const searches = tokensOf(objectOf(search)['num_requests'])
  return {
    inputTokens: tokensOf(usage['input_tokens']),
    outputTokens: tokensOf(usage['output_tokens']),
    cachedInputTokens: tokensOf(input['cached_tokens']),
    cacheWriteTokens: tokensOf(input['cache_write_tokens']),
    reasoningTokens: tokensOf(output['reasoning_tokens']),
    ...(searches > 0 && { webSearches: searches }),
  }
}

export const writeUsage = (usage: Usage): Json => ({
  input_tokens: usage.inputTokens,
  input_tokens_details: {
    cached_tokens: usage.cachedInputTokens,
    cache_write_tokens: usage.cacheWriteTokens,
  },
  output_tokens: usage.outputTokens,
  output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  total_tokens: usage.inputTokens + usage.outputTokens,
})

/** Searches of the provider stand beside the usage. */
export const writeToolUsage = ({ webSearches = 0 }: Usage): Json =>
  webSearches === 0 ? {} : { tool_usage: { web_search: { num_requests: webSearches } } }

/** Audio has frames of its own; an image comes in previews, and as the result of its item. */
export function hasMediaInResponseFrame(frame: Json): boolean {
  const type = asText(frame['type']) ?? ''
  if (type.startsWith('response.audio.') || type.endsWith('.partial_image')) return true
  return asText(objectOf(frame['item'])['result']) !== undefined
}

export const hasMediaInOutput = ({ output }: Json): boolean =>
  listOf(output).some((item) => asText(objectOf(item)['result']) !== undefined)

export const usageInResponseFrame = (frame: Json): Json | undefined =>
  asObject(objectOf(frame['response'])['usage'])
