import type { Json, Usage } from '#formats/answer.ts'
import { asObject, isTokenCount, listOf, objectOf, tokensOf } from '#formats/json-values.ts'

/** The members that every usage must have, 0 where the upstream reports none. */
const counters = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
] as const

/**
 * Merges the usages of a stream, each of which repeats the totals known so far. A later count replaces an
 * earlier one, unless it is missing, impossible, or a 0 after a real count.
 */
export function mergeUsage(earlier: Json, later: Json): Json {
  const merged = { ...earlier }
  for (const [name, value] of Object.entries(later)) {
    if (value === null || value === undefined) continue
    const isNoCount = typeof value === 'number' && tokensOf(value) === 0
    if (isNoCount && tokensOf(earlier[name]) > 0) continue
    merged[name] = value
  }
  return merged
}

export const isCompleteUsage = (usage: Json): boolean =>
  counters.every((name) => isTokenCount(usage[name]))

/** The usage with all the members it must have. */
export function completeUsage(usage: Json): Json {
  return { ...usage, ...Object.fromEntries(counters.map((name) => [name, tokensOf(usage[name])])) }
}

/** In this format `input_tokens` excludes cached tokens; in `Usage` it includes them. */
export function readMessageUsage(sent: Json): Usage {
  const usage = withAllIterations(sent)
  const cachedInputTokens = tokensOf(usage['cache_read_input_tokens'])
  const cacheWriteTokens = tokensOf(usage['cache_creation_input_tokens'])
  return {
    inputTokens: tokensOf(usage['input_tokens']) + cachedInputTokens + cacheWriteTokens,
    outputTokens: tokensOf(usage['output_tokens']),
    cachedInputTokens,
    cacheWriteTokens,
    reasoningTokens: tokensOf(objectOf(usage['output_tokens_details'])['thinking_tokens']),
    ...readPriced(usage),
  }
}

/** The totals leave out what the provider has read and written on its own account, such as a summary of the context. */
function withAllIterations(usage: Json): Json {
  const iterations = listOf(usage['iterations']).map(objectOf)
  if (iterations.length === 0) return usage
  const sums = counters.map((name) => {
    const sum = iterations.reduce((total, iteration) => total + tokensOf(iteration[name]), 0)
    return [name, Math.max(sum, tokensOf(usage[name]))] as const
  })
  return { ...usage, ...Object.fromEntries(sums) }
}

/** What has a price of its own, where there is any of it. */
function readPriced(usage: Json): Pick<Usage, 'cacheWriteHourTokens' | 'webSearches'> {
  const hour = tokensOf(objectOf(usage['cache_creation'])['ephemeral_1h_input_tokens'])
  const searches = tokensOf(objectOf(usage['server_tool_use'])['web_search_requests'])
  return {
    ...(hour > 0 && { cacheWriteHourTokens: hour }),
    ...(searches > 0 && { webSearches: searches }),
  }
}

export function writeMessageUsage(usage: Usage): Json {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage
  return {
    input_tokens: Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedInputTokens,
    output_tokens: outputTokens,
    ...(reasoningTokens > 0 && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
    ...writePriced(usage),
  }
}

const writePriced = ({ cacheWriteTokens, cacheWriteHourTokens = 0, webSearches = 0 }: Usage) => ({
  ...(cacheWriteHourTokens > 0 && {
    cache_creation: {
      ephemeral_5m_input_tokens: cacheWriteTokens - cacheWriteHourTokens,
      ephemeral_1h_input_tokens: cacheWriteHourTokens,
    },
  }),
  ...(webSearches > 0 && { server_tool_use: { web_search_requests: webSearches } }),
})

/** `message_start` has it in the message, `message_delta` beside the delta. */
export const usageInMessageFrame = (frame: Json): Json | undefined =>
  asObject(frame['usage'] ?? objectOf(frame['message'])['usage'])
