import { toUsd } from '#credits/money.ts'
import type { PricedUsage } from '#credits/price.ts'
import type { Metrics } from '#platform/metrics.ts'

export type UsageMetrics = Pick<Metrics, 'tokens' | 'costUsd'>

type CallUsage = {
  /** The model's id in the catalogue, never the name that a caller has sent. */
  model: string
  usage: PricedUsage
  credits: bigint
}

/** Adds a call to the metrics. Each token counts once. */
export function countUsage({ tokens, costUsd }: UsageMetrics, call: CallUsage) {
  const { model, usage, credits } = call
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage
  const kinds = {
    // An upstream may report more cached tokens than input.
    input: Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens),
    cached_input: cachedInputTokens,
    cache_write: cacheWriteTokens,
    output: outputTokens,
  }
  for (const [kind, count] of Object.entries(kinds)) {
    if (count > 0) tokens.inc({ model, kind }, count)
  }
  if (credits > 0n) costUsd.inc({ model }, toUsd(credits))
}
