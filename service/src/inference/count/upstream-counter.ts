import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'

import type { Json } from '#formats/answer.ts'
import { isTokenCount } from '#formats/json-values.ts'
import type { PostToUpstream } from '#inference/upstreams/post-upstream.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import { createBreaker } from '#platform/breaker.ts'
import type { Clock } from '#platform/clock.ts'
import { within } from '#platform/deadline.ts'

/** The API of a counter. Recent versions of vLLM and llama.cpp also offer that of `anthropic`. */
export type CounterKind = 'anthropic' | 'vllm' | 'llama_cpp'

/** Headers of the caller that may change the count. */
type Headers = Readonly<Record<string, string>>

export type UpstreamCounter = {
  /** Returns undefined if the upstream gave no count. `request` is in the upstream's own format. */
  count(request: Json, signal: AbortSignal, headers?: Headers): Promise<number | undefined>
}

type Options = { kind: CounterKind; post: PostToUpstream; now: Clock; deadlineMs?: number }

const cachedMs = 5 * 60 * 1000
const cachedMax = 1000

/**
 * Asks an upstream for the number of tokens it would read, which costs nothing. Counts are cached for five
 * minutes. After five failures in a row the upstream is not called for 30 seconds.
 */
export function createUpstreamCounter(options: Options): UpstreamCounter {
  const { kind, post, now, deadlineMs = 2000 } = options
  const cache = createCache(now)
  const breaker = createBreaker({ now, failuresMax: 5, pauseMs: 30_000 })

  async function ask(request: Json, signal: AbortSignal, headers: Headers) {
    try {
      const count = (either: AbortSignal) =>
        counters[kind](request, async (path, json) =>
          readAnswer(await post(path, json, either, headers)),
        )
      const answer = await within(deadlineMs, tooLate, count, signal)
      const tokens = requireCount(answer)
      breaker.succeeded()
      return tokens
    } catch (error) {
      // An aborted call, or a request that cannot be counted, is not a failure of the upstream.
      if (signal.aborted) throw signal.reason
      if (error instanceof CountRefused) breaker.succeeded()
      else breaker.failed()
      return undefined
    }
  }

  return {
    async count(request, signal, headers = {}) {
      signal.throwIfAborted()
      const text = JSON.stringify([request, headers])
      // Each of these takes up to a tenth of a second for the largest request, so other calls run between them.
      await setImmediate()
      const key = hash('sha256', text, 'base64')
      const cached = cache.find(key)
      if (cached !== undefined || !breaker.mayTry()) return cached
      const tokens = await ask(request, signal, headers)
      if (tokens !== undefined) cache.set(key, tokens)
      return tokens
    },
  }
}

type Post = (path: string, json: Json) => Promise<Json>

/** The requests of each kind of counter. */
const counters = {
  async anthropic(request, post) {
    return (await post('/v1/messages/count_tokens', request))['input_tokens']
  },
  async vllm({ model, messages, tools }, post) {
    const answer = await post('/tokenize', { model, messages, ...(tools ? { tools } : {}) })
    return answer['count']
  },
  async llama_cpp({ messages, tools }, post) {
    const answer = await post('/apply-template', { messages, ...(tools ? { tools } : {}) })
    const prompt = answer['prompt']
    if (typeof prompt !== 'string') throw new Error('The template was not applied.')
    const body = { content: prompt, add_special: true, parse_special: true }
    const { tokens } = await post('/tokenize', body)
    return Array.isArray(tokens) ? tokens.length : undefined
  },
} as const satisfies Record<CounterKind, (request: Json, post: Post) => Promise<unknown>>

class CountRefused extends Error {
  override readonly name = 'CountRefused'
}

function readAnswer({ status, json }: { status: number; json: unknown }): Json {
  if ([400, 413, 422].includes(status)) throw new CountRefused('The upstream cannot count this.')
  if (status !== 200) throw new Error(`The counter of the upstream answered ${status}.`)
  if (typeof json !== 'object' || json === null) throw new Error('The answer is not an object.')
  return json as Json
}

function requireCount(tokens: unknown): number {
  if (!isTokenCount(tokens)) throw new Error('The answer is not a count.')
  return tokens
}

const tooLate = () => new Error('The counter of the upstream did not answer in time.')

function createCache(now: Clock) {
  const counts = new BoundedMap<string, { tokens: number; untilMs: number }>(cachedMax)
  return {
    find(key: string): number | undefined {
      const count = counts.get(key)
      return count && now().getTime() < count.untilMs ? count.tokens : undefined
    },
    set(key: string, tokens: number) {
      counts.set(key, { tokens, untilMs: now().getTime() + cachedMs })
    },
  }
}
