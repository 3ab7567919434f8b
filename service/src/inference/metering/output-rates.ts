import { BoundedMap } from '#platform/bounded-map.ts'

/** The means of output and of time are kept separately, because a short answer says little about how fast a model writes. */
type Rate = { tokens: number; seconds: number; calls: number }
type Known = { mean: Rate; last: LastRates }
type Written = { outputTokens: number; tookMs: number }

const pairsMax = 1000
/**
 * Only the organizations that called most recently have rates of their own. All others are charged by the mean of all
 * organizations, as new ones are.
 */
const ownMax = 10_000
/** The rate that is used until this many calls are known. */
const callsMin = 10
const usualTokensPerSecond = 50
/** The mean covers about this many calls. */
const callsMax = 100
const capShare = 0.9

export type OutputWriter = { organizationId: string; upstream: string; model: string }

/**
 * How fast each model writes at each upstream, according to the usage that upstreams report. The rates serve to estimate
 * reasoning that an upstream does not show and a caller does not wait for. Each organization has rates of its own, so that what
 * one organization had written, or an upstream reported for it, never becomes the price of others.
 */
export function createOutputRates() {
  const own = new BoundedMap<string, Rate>(ownMax)
  const all = new BoundedMap<string, Known>(pairsMax)
  const ownKeyOf = ({ organizationId, upstream, model }: OutputWriter) =>
    JSON.stringify([organizationId, upstream, model])
  const keyOf = ({ upstream, model }: OutputWriter) => JSON.stringify([upstream, model])

  return {
    /**
     * Called with every complete answer whose upstream has reported its usage. If the report exceeds what was asked for, only
     * what was asked for counts.
     */
    observe(
      writer: OutputWriter,
      { maxOutputTokens, ...answer }: Written & { maxOutputTokens: number },
    ) {
      const outputTokens = Math.min(answer.outputTokens, maxOutputTokens)
      const { tookMs } = answer
      if (outputTokens <= 0 || tookMs <= 0) return
      const written = { outputTokens, tookMs }
      const ownKey = ownKeyOf(writer)
      own.set(ownKey, add(own.get(ownKey) ?? nothing, written))
      const key = keyOf(writer)
      const { mean, last } = all.get(key) ?? { mean: nothing, last: new LastRates() }
      last.add((outputTokens * 1000) / tookMs)
      all.set(key, { mean: add(mean, written), last })
    },
    tokensPerSecond(writer: OutputWriter): number {
      const ownRate = own.get(ownKeyOf(writer))
      if (ownRate && ownRate.calls >= callsMin) return ownRate.tokens / ownRate.seconds
      const known = all.get(keyOf(writer))
      if (!known || known.mean.calls < callsMin) return usualTokensPerSecond
      const { mean, last } = known
      return Math.min(mean.tokens / mean.seconds, last.quantile(capShare))
    },
  }
}

const nothing: Rate = { tokens: 0, seconds: 0, calls: 0 }

function add({ tokens, seconds, calls }: Rate, { outputTokens, tookMs }: Written): Rate {
  const weight = 1 / Math.min(calls + 1, callsMax)
  return {
    tokens: tokens + (outputTokens - tokens) * weight,
    seconds: seconds + (tookMs / 1000 - seconds) * weight,
    calls: calls + 1,
  }
}

/** The rates of the last calls, one by one. A few odd calls move a mean, but not a quantile. */
class LastRates {
  readonly #rates: number[] = []
  #next = 0

  add(tokensPerSecond: number) {
    this.#rates[this.#next] = tokensPerSecond
    this.#next = (this.#next + 1) % callsMax
  }

  /** The smallest rate that this share of the calls does not exceed. */
  quantile(share: number): number {
    const sorted = this.#rates.toSorted((one, other) => one - other)
    return sorted[Math.ceil(share * sorted.length) - 1] ?? 0
  }
}
