/** Prices of one model in pico-USD per token, so that cheap models stay integers. */
export type Price = { input: bigint; output: bigint; cachedInput: bigint; cacheWrite: bigint }

export type PricedUsage = {
  /** Everything that was read, cached or not. */
  inputTokens: number
  cachedInputTokens: number
  cacheWriteTokens: number
  outputTokens: number
}

/** `0.15` US dollars per million tokens: six decimals make it exact. */
export function readPrice(usdPerMillion: string): bigint {
  const [whole = '', decimals = ''] = usdPerMillion.split('.')
  return BigInt(whole + decimals.padEnd(6, '0'))
}

/** No call is this long: whoever says so must not make amounts overflow. */
const tokensMax = 1_000_000_000

/** One credit is one micro-USD (G1.1). Rounded once, up. */
export function creditsFor(usage: PricedUsage, price: Price): bigint {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage
  const fresh = inputTokens - cachedInputTokens - cacheWriteTokens
  const picoUsd =
    tokens(fresh) * price.input +
    tokens(cachedInputTokens) * price.cachedInput +
    tokens(cacheWriteTokens) * price.cacheWrite +
    tokens(outputTokens) * price.output
  return (picoUsd + 999_999n) / 1_000_000n
}

const tokens = (count: number) => BigInt(Math.min(Math.max(0, count), tokensMax))

type Asked = { inputTokens: number; isExact: boolean; maxOutputTokens: number }

/**
 * What a call can cost at most: an estimated input may be a tenth longer than thought, and all of it may
 * be of the most expensive kind.
 */
export function worstCaseCredits(asked: Asked, price: Price): bigint {
  const { inputTokens, isExact, maxOutputTokens } = asked
  const read = isExact ? inputTokens : inputTokens + Math.ceil(inputTokens / 10)
  const dearest = [price.input, price.cachedInput, price.cacheWrite].reduce((one, other) =>
    one > other ? one : other,
  )
  const usage = { cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: maxOutputTokens }
  return creditsFor({ ...usage, inputTokens: read }, { ...price, input: dearest })
}
