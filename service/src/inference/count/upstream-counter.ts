import { hash } from 'node:crypto'

import type { Json } from '#inference/answer.ts'
import { createBreaker } from '#platform/breaker.ts'
import type { Clock } from '#platform/clock.ts'
import { within } from '#platform/deadline.ts'

/** How an upstream can be asked to count; anthropic: also what recent vLLM and llama.cpp answer to. */
export type CounterKind = 'anthropic' | 'vllm' | 'llama_cpp'

/** Calls the upstream. Rejects when it cannot be reached. */
export type Post = (
  path: string,
  json: Json,
  signal: AbortSignal,
  headers: Headers,
) => Promise<{ status: number; json: unknown }>

/** The caller's, where they change what the upstream understands. */
type Headers = Readonly<Record<string, string>>

export type UpstreamCounter = {
  /** Undefined: it cannot be known now. `request` is in the upstream's own format. */
  ask(request: Json, signal: AbortSignal, headers?: Headers): Promise<number | undefined>
}

type Options = { kind: CounterKind; post: Post; now: Clock; deadlineMs?: number }

const keptMs = 5 * 60 * 1000
const keptMax = 1000
/** No model reads more: whoever says so has made a mistake. */
const tokensMax = 100_000_000

/**
 * Asks an upstream how many tokens it would read. Its answer is remembered for some minutes, and one that
 * fails again and again is left alone for a while. The call costs nothing.
 */
export function createUpstreamCounter(options: Options): UpstreamCounter {
  const { kind, post, now, deadlineMs = 2000 } = options
  const answers = createAnswers(now)
  const breaker = createBreaker({ now, failuresMax: 5, pauseMs: 30_000 })

  async function askNow(request: Json, signal: AbortSignal, headers: Headers) {
    try {
      const answer = await within(deadlineMs, tooLate, (deadline) =>
        ways[kind](request, async (path, json) => {
          return readAnswer(await post(path, json, AbortSignal.any([deadline, signal]), headers))
        }),
      )
      const tokens = checked(answer)
      breaker.succeeded()
      return tokens
    } catch (error) {
      // Whoever leaves, or sends what cannot be counted, says nothing about the upstream.
      if (signal.aborted) throw signal.reason
      if (error instanceof Refused) breaker.succeeded()
      else breaker.failed()
      return undefined
    }
  }

  return {
    async ask(request, signal, headers = {}) {
      signal.throwIfAborted()
      const key = hash('sha256', JSON.stringify([request, headers]), 'base64')
      const known = answers.find(key)
      if (known !== undefined || !breaker.mayTry()) return known
      const tokens = await askNow(request, signal, headers)
      if (tokens !== undefined) answers.keep(key, tokens)
      return tokens
    },
  }
}

type Call = (path: string, json: Json) => Promise<Json>

const ways = {
  async anthropic(request, call) {
    return (await call('/v1/messages/count_tokens', request))['input_tokens']
  },
  async vllm({ model, messages, tools }, call) {
    const answer = await call('/tokenize', { model, messages, ...(tools ? { tools } : {}) })
    return answer['count']
  },
  async llama_cpp({ messages, tools }, call) {
    const answer = await call('/apply-template', { messages, ...(tools ? { tools } : {}) })
    const prompt = answer['prompt']
    if (typeof prompt !== 'string') throw new Error('The template was not applied.')
    const asked = { content: prompt, add_special: true, parse_special: true }
    const { tokens } = await call('/tokenize', asked)
    return Array.isArray(tokens) ? tokens.length : undefined
  },
} as const satisfies Record<CounterKind, (request: Json, call: Call) => Promise<unknown>>

class Refused extends Error {
  override readonly name = 'Refused'
}

function readAnswer({ status, json }: { status: number; json: unknown }): Json {
  if ([400, 413, 422].includes(status)) throw new Refused('The upstream cannot count this.')
  if (status !== 200) throw new Error(`The counter of the upstream answered ${status}.`)
  if (typeof json !== 'object' || json === null) throw new Error('The answer is no object.')
  return json as Json
}

function checked(tokens: unknown): number {
  const isCount = Number.isSafeInteger(tokens) && Number(tokens) >= 0 && Number(tokens) <= tokensMax
  if (!isCount) throw new Error('The answer is no count.')
  return Number(tokens)
}

const tooLate = () => new Error('The counter of the upstream did not answer in time.')

/** The oldest is forgotten first. */
function createAnswers(now: Clock) {
  const answers = new Map<string, { tokens: number; untilMs: number }>()
  return {
    find(key: string): number | undefined {
      const answer = answers.get(key)
      return answer && now().getTime() < answer.untilMs ? answer.tokens : undefined
    },
    keep(key: string, tokens: number) {
      answers.delete(key)
      answers.set(key, { tokens, untilMs: now().getTime() + keptMs })
      const oldest = answers.size > keptMax ? answers.keys().next().value : undefined
      if (oldest !== undefined) answers.delete(oldest)
    },
  }
}
