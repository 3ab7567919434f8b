import { BoundedMap } from '#platform/bounded-map.ts'

/** Means, taken apart: a short answer says little about how fast a model writes. */
type Rate = { tokens: number; seconds: number; calls: number }

const pairsMax = 1000
/** Until as many calls are known. */
const callsMin = 10
const usualTokensPerSecond = 50
/** The mean is that of about as many calls. */
const callsMax = 100

/**
 * How fast each model writes at each upstream, by the usage that upstreams report. By it the reasoning is estimated
 * that an upstream does not show and a caller does not wait for.
 */
export function createOutputRates() {
  const rates = new BoundedMap<string, Rate>(pairsMax)
  const keyOf = (upstream: string, model: string) => JSON.stringify([upstream, model])

  return {
    /** Called with every complete answer whose upstream has reported its usage. */
    observe(upstream: string, model: string, answer: { outputTokens: number; tookMs: number }) {
      const { outputTokens, tookMs } = answer
      if (outputTokens === 0 || tookMs <= 0) return
      const key = keyOf(upstream, model)
      const { tokens, seconds, calls } = rates.get(key) ?? { tokens: 0, seconds: 0, calls: 0 }
      const weight = 1 / Math.min(calls + 1, callsMax)
      rates.set(key, {
        tokens: tokens + (outputTokens - tokens) * weight,
        seconds: seconds + (tookMs / 1000 - seconds) * weight,
        calls: calls + 1,
      })
    },
    tokensPerSecond(upstream: string, model: string): number {
      const rate = rates.get(keyOf(upstream, model))
      return rate && rate.calls >= callsMin ? rate.tokens / rate.seconds : usualTokensPerSecond
    },
  }
}
