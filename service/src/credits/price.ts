/** The prices of a model, in pico-USD per token. */
export type Price = {
  input: bigint
  output: bigint
  cachedInput: bigint
  cacheWrite: bigint
  /** For what is cached for an hour; as `cacheWrite` if absent. */
  cacheWriteHour?: bigint
  /** In pico-USD per search; none if absent. */
  webSearch?: bigint
}

export type PricedUsage = {
  /** All input, cached or not. */
  inputTokens: number
  cachedInputTokens: number
  cacheWriteTokens: number
  outputTokens: number
  /** Those of `cacheWriteTokens` that are cached for an hour. */
  cacheWriteHourTokens?: number
  webSearches?: number
}

/** Reads a price in US dollars per million tokens, as `0.15`, with at most six decimals. */
export function readPrice(usdPerMillion: string): bigint {
  const [whole = '', decimals = ''] = usdPerMillion.split('.')
  return BigInt(whole + decimals.padEnd(6, '0'))
}

/** Reads a price in US dollars per call, as `0.01`, with at most six decimals. */
export const readPriceOfCall = (usd: string): bigint => readPrice(usd) * 1_000_000n

/** The inverse of `readPrice`, without trailing zeros. */
export function formatPrice(picoUsdPerToken: number): string {
  const digits = BigInt(picoUsdPerToken).toString().padStart(7, '0')
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '')
}

/** The inverse of `readPriceOfCall`. */
export const formatPriceOfCall = (picoUsd: number): string => formatPrice(picoUsd / 1_000_000)

const picoUsdPerCredit = 1_000_000n

/** No call has this many tokens. A false count of an upstream must not make amounts overflow. */
const tokensMax = 1_000_000_000

/** What a call costs in credits, rounded up once. */
export function creditsFor(usage: PricedUsage, price: Price): bigint {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage
  const { cacheWriteHourTokens = 0, webSearches = 0 } = usage
  const uncachedTokens = inputTokens - cachedInputTokens - cacheWriteTokens
  const picoUsd =
    clampTokens(uncachedTokens) * price.input +
    clampTokens(cachedInputTokens) * price.cachedInput +
    clampTokens(cacheWriteTokens - cacheWriteHourTokens) * price.cacheWrite +
    clampTokens(cacheWriteHourTokens) * (price.cacheWriteHour ?? price.cacheWrite) +
    clampTokens(outputTokens) * price.output +
    clampTokens(webSearches) * (price.webSearch ?? 0n)
  return (picoUsd + picoUsdPerCredit - 1n) / picoUsdPerCredit
}

const clampTokens = (count: number) => BigInt(Math.min(Math.max(0, count), tokensMax))

type TokenEstimate = {
  inputTokens: number
  isExact: boolean
  maxOutputTokens: number
  /** The most searches of the call. */
  webSearches: number
}

/**
 * The most that a call can cost: an estimated input may be a tenth too low, and all of it may be of the most
 * expensive kind.
 */
export function worstCaseCredits(estimate: TokenEstimate, price: Price): bigint {
  const { inputTokens, isExact, maxOutputTokens, webSearches } = estimate
  const inputTokensMax = isExact ? inputTokens : inputTokens + Math.ceil(inputTokens / 10)
  const { input, cachedInput, cacheWrite, cacheWriteHour = 0n } = price
  const highestPrice = [input, cachedInput, cacheWrite, cacheWriteHour].reduce((one, other) =>
    one > other ? one : other,
  )
  const usage = {
    inputTokens: inputTokensMax,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: maxOutputTokens,
    webSearches,
  }
  return creditsFor(usage, { ...price, input: highestPrice })
}
