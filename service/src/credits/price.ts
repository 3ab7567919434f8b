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

/** One credit is one micro-USD (G1.1). Rounded once, up. */
export function creditsFor(usage: PricedUsage, price: Price): bigint {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage
  const fresh = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens)
  const picoUsd =
    BigInt(fresh) * price.input +
    BigInt(cachedInputTokens) * price.cachedInput +
    BigInt(cacheWriteTokens) * price.cacheWrite +
    BigInt(outputTokens) * price.output
  return (picoUsd + 999_999n) / 1_000_000n
}
