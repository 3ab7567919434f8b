import type { Json, Usage } from '#inference/answer.ts'
import { chatCompletions } from '#inference/chat-completions/chat-completion-protocol.ts'
import type { Turn } from '#inference/turn.ts'
import type { CatalogueModel } from '#inference/upstreams/catalogue.ts'
import { createUpstreamPosts } from '#inference/upstreams/post-upstream.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { OriginPools } from '#platform/origin-pools.ts'
import type { ThreadPool } from '#platform/thread-pool.ts'
import type { Encoding } from '#tokens/ranks.ts'

import { countInThreads } from './count-in-thread.ts'
import {
  type CountingRule,
  createTurnCounter,
  requireCountable,
  type TurnCount,
} from './count-turn.ts'
import type { FittedFactors } from './fitted-factor.ts'
import { withoutEarlierReasoning } from './last-turn.ts'
import { createUpstreamCounter, type UpstreamCounter } from './upstream-counter.ts'
import { toMessagesCount } from './upstream-request.ts'

type Options = { threads: ThreadPool; pools: OriginPools; factors: FittedFactors; now: Clock }

const leastOutput = { maxOutputTokens: 1, outputLimitMember: 'max_tokens' } as const

type CountRequest = { request: Json; keepsAll: boolean; headers: Record<string, string> }

/** How long texts are, by whatever means there are: here, in a thread, or asked of the upstream. */
export function createInputCounting({ threads, pools, factors, now }: Options) {
  const counter = createTurnCounter({ countElsewhere: countInThreads(threads) })
  const postTo = createUpstreamPosts(pools)
  const upstreamCounters = new Map<string, UpstreamCounter>()

  const ruleOf = (model: CatalogueModel): CountingRule => ({
    encoding: model.encoding,
    isOwnEncoding: model.is_encoding_exact,
    factors: factors.factorsOf(model.id, model.token_factor),
  })

  /** The counter of the model's first upstream; null where that has none. */
  function upstreamCounterOf({ upstreams: [first] }: CatalogueModel): UpstreamCounter | null {
    const kind = first?.upstream.counter
    if (!first || !kind) return null
    // Another address or key is another upstream.
    const key = JSON.stringify([
      first.upstream.name,
      first.upstream.base_url,
      first.upstream.secret,
    ])
    const known = upstreamCounters.get(key)
    if (known) return known
    if (upstreamCounters.size > 1000) upstreamCounters.clear()
    const fresh = createUpstreamCounter({ kind, post: postTo(first.upstream), now })
    upstreamCounters.set(key, fresh)
    return fresh
  }

  return {
    /** What `countInput` needs for a request in the Messages format. */
    of(model: CatalogueModel, { request, keepsAll, headers }: CountRequest) {
      const [first] = model.upstreams
      const name = first?.model ?? model.id
      const isMessages = first?.upstream.counter === 'anthropic'
      return {
        ...{ rule: ruleOf(model), counter, upstream: upstreamCounterOf(model) },
        ...(isMessages && { headers }),
        toRequest: (turn: Turn): Json =>
          isMessages
            ? toMessagesCount(request, name, keepsAll)
            : chatCompletions.writeRequest(turn, { ...leastOutput, model: name }),
      }
    },
    /** Without asking anybody: what is reserved before a call. */
    async estimate(turn: Turn, model: CatalogueModel, signal: AbortSignal): Promise<TurnCount> {
      const read = withoutEarlierReasoning(turn)
      try {
        return await counter.count(read, ruleOf(model), signal)
      } catch (error) {
        if (error instanceof ApiError && error.code === 'overloaded') return guess(read)
        throw error
      }
    },
    /** What an answer has come to, where its upstream does not say. */
    countText: (text: string, encoding: Encoding): Promise<number> =>
      counter.countText(text, encoding),
    /** Learns from what an upstream says it has read. */
    learn(model: CatalogueModel, { localTokens, script }: TurnCount, { inputTokens }: Usage) {
      factors.observe({
        ...{ model: model.id, start: model.token_factor, script, localTokens },
        upstreamTokens: inputTokens,
      })
    },
    warm: counter.warm,
  }
}
/** No thread is free, or the text is a hard one: a guess that errs high is better than a refusal. */
function guess(turn: Turn): TurnCount {
  const { bytes, otherTokens } = requireCountable(turn)
  const tokens = Math.ceil(bytes / 2) + otherTokens
  return { tokens, origin: 'local-estimate', localTokens: 0, script: 'other' }
}

export type InputCounting = ReturnType<typeof createInputCounting>
