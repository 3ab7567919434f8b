import type { Json, Usage } from '#formats/answer.ts'
import { chatUpstreamFormat } from '#formats/chat-completions/chat-completion-format.ts'
import type { Turn } from '#formats/turn.ts'
import type { CatalogueModel } from '#inference/upstreams/catalogue.ts'
import type { FindRefusedMediaUrl } from '#inference/upstreams/check-media-urls.ts'
import { createUpstreamPosts } from '#inference/upstreams/post-upstream.ts'
import { ApiError } from '#platform/api-error.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'
import type { Clock } from '#platform/clock.ts'
import type { OriginPools } from '#platform/origin-pools.ts'
import type { ThreadPool } from '#platform/thread-pool.ts'
import type { Encoding } from '#tokens/ranks.ts'

import { createThreadCounter } from './count-in-thread.ts'
import { toCountRequest } from './count-request.ts'
import {
  type CountAsker,
  type CountingRule,
  createTurnCounter,
  requireCountable,
  type TurnCount,
  type TurnCounter,
} from './count-turn.ts'
import type { FittedFactors } from './fitted-factor.ts'
import { hasUnsizedPart } from './itemize-turn.ts'
import { withoutEarlierReasoning } from './last-turn.ts'
import { createUpstreamCounter, type UpstreamCounter } from './upstream-counter.ts'

type Options = {
  threads: ThreadPool
  pools: OriginPools
  factors: FittedFactors
  findRefusedMediaUrl: FindRefusedMediaUrl
  now: Clock
}

const leastOutput = { maxOutputTokens: 1, outputLimitMember: 'max_tokens' } as const

type EstimateRequest = {
  turn: Turn
  model: CatalogueModel
  /** Whether the provider may add input that the gateway never sees. */
  hasUnseenInput: boolean
}

const neverCancelled = new Cancellation()

type Caller = Omit<CountAsker, 'patience'>
type CountRequest = { request: Json; keepsAll: boolean; headers: Record<string, string> }

/** Counts the tokens of requests and answers: on the event loop, in a thread, or by the upstream's counter. */
export function createInputCounting(options: Options) {
  const { threads, pools, factors, findRefusedMediaUrl, now } = options
  const counter = createTurnCounter({ countInThread: createThreadCounter(threads) })
  const findUpstreamCounter = guardMedia(createUpstreamCounters(pools, now), findRefusedMediaUrl)

  const ruleOf = (model: CatalogueModel): CountingRule => ({
    encoding: model.encoding,
    isOwnEncoding: model.isEncodingExact,
    factors: factors.factorsOf(model.id, model.tokenFactor),
    imageTokensMax: model.imageTokensMax,
  })

  const countSoon = (turn: Turn, model: CatalogueModel, caller: Caller): Promise<TurnCount> =>
    countOrOverestimate(counter, { turn, rule: ruleOf(model) }, caller)

  return {
    countSoon,
    /** The arguments of `countInput` for a request in the Messages format. */
    prepare(model: CatalogueModel, { request, keepsAll, headers }: CountRequest) {
      const [first] = model.upstreams
      const name = first?.model ?? model.id
      const isMessages = first?.upstream.counter === 'anthropic'
      return {
        rule: ruleOf(model),
        counter,
        upstream: findUpstreamCounter(model),
        ...(isMessages && { headers }),
        toRequest: (turn: Turn): Json =>
          isMessages
            ? toCountRequest(request, name, keepsAll)
            : chatUpstreamFormat.writeRequest(turn, { ...leastOutput, model: name }),
      }
    },
    /** The local count, by which tokens are reserved before a call. */
    async estimate(
      { turn, model, hasUnseenInput }: EstimateRequest,
      caller: Caller,
    ): Promise<TurnCount> {
      const count = await countSoon(turn, model, caller)
      if (hasUnsizedPart(withoutEarlierReasoning(turn))) return fillContext(count, model)
      // The model may not have used a tool that was offered, so unless the upstream reports otherwise, only what was sent is
      // charged.
      const billedTokens = count.tokens
      return hasUnseenInput ? { ...fillContext(count, model), billedTokens } : count
    },
    /** Counts an answer whose upstream reports no usage. */
    countText: (text: string, encoding: Encoding, owner: string): Promise<number> =>
      counter.countText(text, encoding, { owner, cancellation: neverCancelled, patience: 'long' }),
    /** Learns from the input tokens that an upstream reports. */
    learn(model: CatalogueModel, { localTokens, script }: TurnCount, { inputTokens }: Usage) {
      factors.observe({
        model: model.id,
        start: model.tokenFactor,
        script,
        localTokens,
        upstreamTokens: inputTokens,
      })
    },
    async warm(used: ReadonlySet<Encoding>) {
      await counter.warm(used)
      // Without models there is nothing to count.
      if (used.size > 0) threads.start()
    },
  }
}

/** Falls back to a high estimate if the count takes too long. */
function countOrOverestimate(
  counter: TurnCounter,
  { turn, rule }: { turn: Turn; rule: CountingRule },
  caller: Caller,
): Promise<TurnCount> {
  const read = withoutEarlierReasoning(turn)
  const asker = { ...caller, patience: 'short' } as const
  return counter.count(read, rule, asker).catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 'overloaded') return overestimate(read, rule)
    throw error
  })
}

/** One counter per upstream, each with a cache and a breaker. */
function createUpstreamCounters(pools: OriginPools, now: Clock) {
  const postTo = createUpstreamPosts(pools)
  const counters = new Map<string, UpstreamCounter>()
  /** The counter of the model's first upstream; null if that has none. */
  return ({ upstreams: [first] }: CatalogueModel): UpstreamCounter | null => {
    const kind = first?.upstream.counter
    if (!first || !kind) return null
    const { name, baseUrl, secret } = first.upstream
    // A changed address or key needs a new counter.
    const key = JSON.stringify([name, baseUrl, secret])
    const known = counters.get(key)
    if (known) return known
    if (counters.size > 1000) counters.clear()
    const counter = createUpstreamCounter({ kind, post: postTo(first.upstream), now })
    counters.set(key, counter)
    return counter
  }
}

/** Close to the highest ratios we have measured: noise has 0.75 tokens per byte of ASCII, and rare scripts have 1 per byte. */
const tokensPerByteMax = { ascii: 0.75, other: 1 } as const

/** Used if no thread is free or the count takes too long, because a high estimate is better than refusing the call. */
function overestimate(turn: Turn, rule: CountingRule): TurnCount {
  const { texts, bytes, otherTokens } = requireCountable(turn, rule)
  const isAscii = texts.every((text) => Buffer.byteLength(text) === text.length)
  const tokens = Math.ceil(bytes * (isAscii ? tokensPerByteMax.ascii : tokensPerByteMax.other))
  return {
    tokens: tokens + otherTokens,
    origin: 'local-estimate',
    localTokens: 0,
    script: 'other',
  }
}

type FindCounter = (model: CatalogueModel) => UpstreamCounter | null

/** Servers fetch media even to count them, so a request with a URL that the upstream may not get is counted here instead. */
function guardMedia(
  find: FindCounter,
  findRefusedMediaUrl: Options['findRefusedMediaUrl'],
): FindCounter {
  return (model) => {
    const [first] = model.upstreams
    const asked = find(model)
    if (!first || !asked) return null
    return {
      async count(request, signal, headers) {
        if (await findRefusedMediaUrl(first.upstream, request)) return undefined
        return asked.count(request, signal, headers)
      },
    }
  }
}

/** A model reads no more than its context. We learn nothing from such a call, because its local count means nothing. */
const fillContext = (count: TurnCount, { contextTokens }: CatalogueModel): TurnCount => ({
  ...count,
  tokens: Math.max(count.tokens, contextTokens),
  origin: 'whole-context',
  localTokens: 0,
})

export type InputCounting = ReturnType<typeof createInputCounting>
