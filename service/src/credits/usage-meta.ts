import { createHash } from 'node:crypto'

import { creditsFor, type Price, type PricedUsage } from './price.ts'

/** The project, key, model and prices of a call: known before it is sent. */
export type HoldMeta = {
  project_id: string | null
  key_id: string
  model: string
  price_version: string
  /** Pico-USD per token. */
  prices: { input: number; cached_input: number; cache_write: number; output: number }
}

/** The `meta` of a ledger entry: all that is needed to compute the charge again. */
export type UsageMeta = HoldMeta & {
  input_tokens: number
  cached_input_tokens: number
  cache_write_tokens: number
  output_tokens: number
  usage_source: 'upstream' | 'local-estimate'
  /** The upstream's own numbers, where some of them were implausible and not used. */
  said_usage?: Readonly<Record<string, number | string>>
}

type HoldMetaSource = { projectId: string | null; keyId: string; model: string; price: Price }

export function buildHoldMeta({ projectId, keyId, model, price }: HoldMetaSource): HoldMeta {
  const prices = {
    input: Number(price.input),
    cached_input: Number(price.cachedInput),
    cache_write: Number(price.cacheWrite),
    output: Number(price.output),
  }
  return {
    project_id: projectId,
    key_id: keyId,
    model,
    price_version: hashPrices(prices),
    prices,
  }
}

/** Equal prices have equal versions, in every process and after every restart. */
function hashPrices(prices: HoldMeta['prices']): string {
  const { input, cached_input, cache_write, output } = prices
  const text = [input, cached_input, cache_write, output].join(' ')
  return `price_${createHash('sha256').update(text).digest('hex').slice(0, 12)}`
}

type MeteredUsage = PricedUsage & {
  origin: UsageMeta['usage_source']
  said?: Readonly<Record<string, number | string>>
}

export const buildUsageMeta = (hold: HoldMeta, used: MeteredUsage): UsageMeta => ({
  ...hold,
  input_tokens: used.inputTokens,
  cached_input_tokens: used.cachedInputTokens,
  cache_write_tokens: used.cacheWriteTokens,
  output_tokens: used.outputTokens,
  usage_source: used.origin,
  ...(used.said && { said_usage: used.said }),
})

/** Computes the cost of a call again, from the `meta` of its ledger entry. */
export function creditsFromMeta(meta: UsageMeta): bigint {
  const { prices } = meta
  const usage = {
    inputTokens: meta.input_tokens,
    cachedInputTokens: meta.cached_input_tokens,
    cacheWriteTokens: meta.cache_write_tokens,
    outputTokens: meta.output_tokens,
  }
  return creditsFor(usage, {
    input: BigInt(prices.input),
    cachedInput: BigInt(prices.cached_input),
    cacheWrite: BigInt(prices.cache_write),
    output: BigInt(prices.output),
  })
}
