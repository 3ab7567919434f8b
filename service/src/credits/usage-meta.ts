import { createHash } from 'node:crypto'

import { creditsFor, type Price, type PricedUsage } from './price.ts'

/** Whose call it is and what it costs by: known before it is sent. */
export type HoldMeta = {
  project_id: string | null
  key_id: string
  model: string
  price_version: string
  /** Pico-USD per token. */
  prices: { input: number; cached_input: number; cache_write: number; output: number }
}

/** What stands beside a charge, so that anybody can compute it again. */
export type UsageMeta = HoldMeta & {
  input_tokens: number
  cached_input_tokens: number
  cache_write_tokens: number
  output_tokens: number
  usage_source: 'upstream' | 'local-estimate'
  /** The upstream's own numbers, where they were not, or not all, believed. */
  said_usage?: Readonly<Record<string, number | string>>
}

type Asked = { projectId: string | null; keyId: string; model: string; price: Price }

export function holdMetaOf({ projectId, keyId, model, price }: Asked): HoldMeta {
  const prices = {
    input: Number(price.input),
    cached_input: Number(price.cachedInput),
    cache_write: Number(price.cacheWrite),
    output: Number(price.output),
  }
  return {
    ...{ project_id: projectId, key_id: keyId, model },
    ...{ price_version: versionOf(prices), prices },
  }
}

/** Equal prices have equal versions, in every process and after every restart. */
function versionOf(prices: HoldMeta['prices']): string {
  const { input, cached_input, cache_write, output } = prices
  const text = [input, cached_input, cache_write, output].join(' ')
  return `price_${createHash('sha256').update(text).digest('hex').slice(0, 12)}`
}

type Used = PricedUsage & {
  origin: UsageMeta['usage_source']
  said?: Readonly<Record<string, number | string>>
}

export const usageMetaOf = (hold: HoldMeta, used: Used): UsageMeta => ({
  ...hold,
  input_tokens: used.inputTokens,
  cached_input_tokens: used.cachedInputTokens,
  cache_write_tokens: used.cacheWriteTokens,
  output_tokens: used.outputTokens,
  usage_source: used.origin,
  ...(used.said && { said_usage: used.said }),
})

/** What a call costs by what stands beside its charge. */
export function creditsByMeta(meta: UsageMeta): bigint {
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
