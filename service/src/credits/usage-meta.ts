import { hash } from 'node:crypto'

import type { ActorType } from '#audit/actor.ts'

import { creditsFor, type Price, type PricedUsage } from './price.ts'

/** The project, key, model and prices of a call: known before it is sent. */
export type HoldMeta = {
  project_id: string | null
  key_id: string
  model: string
  price_version: string
  /** Pico-USD per token, and per search; the last two only for models that have them. */
  prices: {
    input: number
    cached_input: number
    cache_write: number
    output: number
    cache_write_1h?: number
    web_search?: number
  }
  /** Of a hold only: where the call is counted if its process dies. */
  quotas?: { day: string; subjects: readonly { scope: string; subject: string }[] }
  /** Of a hold only: what the event of the call says of its caller if its process dies. Holds of earlier releases have none. */
  caller?: { type: ActorType; project_label?: string; user_id?: string }
}

/** The `meta` of a ledger entry: all that is needed to compute the charge again. */
export type UsageMeta = HoldMeta & {
  input_tokens: number
  cached_input_tokens: number
  cache_write_tokens: number
  output_tokens: number
  /** Those of `cache_write_tokens` that were cached for an hour. */
  cache_write_1h_tokens?: number
  web_searches?: number
  usage_source: 'upstream' | 'local-estimate' | 'time-estimate'
  /** The upstream's own numbers, where some of them were implausible and not used. */
  said_usage?: Readonly<Record<string, number | string>>
}

type HoldMetaSource = { projectId: string | null; keyId: string; model: string; price: Price }

export function buildHoldMeta({ projectId, keyId, model, price }: HoldMetaSource): HoldMeta {
  const { price_version, prices } = describePrice(price)
  return { project_id: projectId, key_id: keyId, model, price_version, prices }
}

type PriceMeta = Pick<HoldMeta, 'price_version' | 'prices'>

/** The prices of the catalogue, which never change while a process runs. */
const knownPrices = new WeakMap<Price, PriceMeta>()

function describePrice(price: Price): PriceMeta {
  const known = knownPrices.get(price)
  if (known) return known
  const prices = {
    input: Number(price.input),
    cached_input: Number(price.cachedInput),
    cache_write: Number(price.cacheWrite),
    output: Number(price.output),
    ...(price.cacheWriteHour !== undefined && { cache_write_1h: Number(price.cacheWriteHour) }),
    ...(price.webSearch !== undefined && { web_search: Number(price.webSearch) }),
  }
  const described = { price_version: hashPrices(prices), prices }
  knownPrices.set(price, described)
  return described
}

/** Equal prices have equal versions, in every process and after every restart. */
function hashPrices(prices: HoldMeta['prices']): string {
  const { input, cached_input, cache_write, output, cache_write_1h, web_search } = prices
  const usual = [input, cached_input, cache_write, output]
  const isUsual = cache_write_1h === undefined && web_search === undefined
  const text = (isUsual ? usual : [...usual, cache_write_1h ?? '', web_search ?? '']).join(' ')
  return `price_${hash('sha256', text, 'hex').slice(0, 12)}`
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
  ...(used.cacheWriteHourTokens && { cache_write_1h_tokens: used.cacheWriteHourTokens }),
  ...(used.webSearches && { web_searches: used.webSearches }),
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
    cacheWriteHourTokens: meta.cache_write_1h_tokens ?? 0,
    webSearches: meta.web_searches ?? 0,
  }
  return creditsFor(usage, {
    input: BigInt(prices.input),
    cachedInput: BigInt(prices.cached_input),
    cacheWrite: BigInt(prices.cache_write),
    output: BigInt(prices.output),
    cacheWriteHour: BigInt(prices.cache_write_1h ?? prices.cache_write),
    webSearch: BigInt(prices.web_search ?? 0),
  })
}
