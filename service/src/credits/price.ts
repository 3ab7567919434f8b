/** The prices of a model, in pico-USD per token. */
export type Price = { input: bigint; output: bigint; cachedInput: bigint; cacheWrite: bigint }

export type PricedUsage = {
  /** All input, cached or not. */
  inputTokens: number
  cachedInputTokens: number
  cacheWriteTokens: number
  outputTokens: number
}

/** Reads a price in US dollars per million tokens, as `0.15`, with at most six decimals. */
export function readPrice(usdPerMillion: string): bigint {
  const [whole = '', decimals = ''] = usdPerMillion.split('.')
  return BigInt(whole + decimals.padEnd(6, '0'))
}

/** The inverse of `readPrice`, without trailing zeros. */
export function formatPrice(picoUsdPerToken: number): string {
  const digits = BigInt(picoUsdPerToken).toString().padStart(7, '0')
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '')
}

const picoUsdPerCredit = 1_000_000n

/** No call has this many tokens. A false count of an upstream must not make amounts overflow. */
const tokensMax = 1_000_000_000

/** What a call costs in credits, rounded up once. */
export function creditsFor(usage: PricedUsage, price: Price): bigint {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage
  const uncachedTokens = inputTokens - cachedInputTokens - cacheWriteTokens
  const picoUsd =
    clampTokens(uncachedTokens) * price.input +
    clampTokens(cachedInputTokens) * price.cachedInput +
    clampTokens(cacheWriteTokens) * price.cacheWrite +
    clampTokens(outputTokens) * price.output
  return (picoUsd + picoUsdPerCredit - 1n) / picoUsdPerCredit
}

const clampTokens = (count: number) => BigInt(Math.min(Math.max(0, count), tokensMax))

type TokenEstimate = { inputTokens: number; isExact: boolean; maxOutputTokens: number }

/**
 * The most that a call can cost: an estimated input may be a tenth too low, and all of it may be of the most
 * expensive kind.
 */
export function worstCaseCredits(estimate: TokenEstimate, price: Price): bigint {
  const { inputTokens, isExact, maxOutputTokens } = estimate
  const inputTokensMax = isExact ? inputTokens : inputTokens + Math.ceil(inputTokens / 10)
  const highestPrice = [price.input, price.cachedInput, price.cacheWrite].reduce((one, other) =>
    one > other ? one : other,
  )
  const usage = { cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: maxOutputTokens }
  return creditsFor({ ...usage, inputTokens: inputTokensMax }, { ...price, input: highestPrice })
}
