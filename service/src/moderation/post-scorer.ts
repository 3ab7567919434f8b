import { followSignal } from '#platform/calls/cancellation.ts'
import { type Origin, type OriginPools, PoolFull } from '#platform/origin-pools.ts'

import type { ModelPlace } from './read-moderation.ts'
import { ScorerFailure, type ScorerProblem } from './scorer.ts'

/** Posts JSON to a model and returns the JSON of its answer; throws a ScorerFailure. Paths start at the root of its server. */
export type PostToModel = (path: string, body: object, signal: AbortSignal) => Promise<unknown>

/** The same for callers that read an answer with any status; throws a ScorerFailure if there is no answer. */
type Post = (path: string, body: object, signal: AbortSignal) => Promise<Answer>

const answerMaxBytes = 256 * 1024
/** The second attempt is for a connection that the server closed just when it was used again. */
const attemptsMax = 2

export function createPostToModel(...options: Parameters<typeof createPost>): PostToModel {
  const post = createPost(...options)
  return async (path, body, signal) => readAnswer(await post(path, body, signal))
}

/**
 * Makes the calls to one scorer or judge. Its address comes from the operator, so it may be private, like an upstream's. A call
 * always ends after `deadlineMs`: a second attempt gets only the time that the first has left.
 */
export function createPost(
  pools: Pick<OriginPools, 'collect'>,
  place: ModelPlace,
  deadlineMs: number,
): Post {
  const origin = scorerOriginOf(place)
  const basePath = new URL(place.baseUrl).pathname.replace(/\/+$/, '').replace(/\/v1$/, '')
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'gatehouse',
    ...(place.secret !== null && { authorization: `Bearer ${place.secret}` }),
  }

  return async (path, body, signal) => {
    const endsAtMs = performance.now() + deadlineMs
    const text = JSON.stringify(body)
    using following = followSignal(signal)
    for (let attempt = 1; ; attempt++) {
      const request = {
        method: 'POST',
        path: basePath + path,
        body: text,
        headers,
        cancellation: following.cancellation,
        timeoutMs: Math.max(1, Math.ceil(endsAtMs - performance.now())),
        createTimeout: () => failure('timeout', `did not answer within ${deadlineMs} ms`),
        isSilent: true,
      } as const
      try {
        return await pools.collect(origin, request, answerMaxBytes)
      } catch (error) {
        const failed = toFailure(error, signal)
        if (attempt >= attemptsMax || !isUnreachable(failed)) throw failed
      }
    }
  }
}

/** The same settings for all scorers, so that scorers on one server share its connections. Only the call's own deadline counts. */
export const scorerOriginOf = ({ baseUrl }: Pick<ModelPlace, 'baseUrl'>): Origin => ({
  origin: new URL(baseUrl).origin,
  settings: {
    connections: 512,
    connectTimeoutMs: 2000,
    firstByteTimeoutMs: 10_000,
    idleTimeoutMs: 10_000,
  },
})

type Answer = Awaited<ReturnType<OriginPools['collect']>>

function readAnswer({ status, body, isComplete }: Answer): unknown {
  if (status !== 200) throw failure(problemOf(status), `answered ${status}`)
  if (!isComplete) throw failure('malformed', 'answered with more than 256 KiB')
  try {
    return JSON.parse(body.toString())
  } catch {
    throw failure('malformed', 'answered with something that is not JSON')
  }
}

function problemOf(status: number): ScorerProblem {
  if (status === 401 || status === 403 || status === 404) return 'misconfigured'
  if (status === 429) return 'busy'
  return status >= 400 && status < 500 ? 'rejected' : 'error'
}

/**
 * The caller's own reason if the call was given up, otherwise a ScorerFailure. Errors of libraries are not passed on, because
 * they may name addresses.
 */
function toFailure(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  if (error instanceof ScorerFailure) return error
  if (error instanceof PoolFull) return failure('overloaded', 'has too many calls open')
  const { code = 'unknown' } = Object(error) as { code?: unknown }
  return failure('unreachable', `could not be reached (${String(code)})`, error)
}

const isUnreachable = (error: unknown) =>
  error instanceof ScorerFailure && error.kind === 'unreachable'

const failure = (problem: ScorerProblem, what: string, cause?: unknown) =>
  new ScorerFailure(problem, `The model ${what}.`, cause === undefined ? {} : { cause })
