import type { Json, Usage } from '#inference/answer.ts'
import { objectOf, tokensOf } from '#inference/untyped.ts'

/** The members every usage of ours has (G4.51). */
const counters = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
] as const

/**
 * One usage after another, as a stream reports them: each repeats the totals it knows. A later count
 * wins; a missing or impossible one, or a 0 from somebody who did not count, does not.
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

/** With all the members a usage must have. */
export function completeUsage(usage: Json): Json {
  return { ...usage, ...Object.fromEntries(counters.map((name) => [name, tokensOf(usage[name])])) }
}

/** This format counts what was cached apart from the input; we count it in. */
export function readUsage(usage: Json): Usage {
  const cachedInputTokens = tokensOf(usage['cache_read_input_tokens'])
  const cacheWriteTokens = tokensOf(usage['cache_creation_input_tokens'])
  return {
    inputTokens: tokensOf(usage['input_tokens']) + cachedInputTokens + cacheWriteTokens,
    outputTokens: tokensOf(usage['output_tokens']),
    cachedInputTokens,
    cacheWriteTokens,
    reasoningTokens: tokensOf(objectOf(usage['output_tokens_details'])['thinking_tokens']),
  }
}

export function writeUsage(usage: Usage): Json {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage
  return {
    input_tokens: Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedInputTokens,
    output_tokens: outputTokens,
    ...(reasoningTokens > 0 && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
  }
}
