import { BrokenAnswer } from '#inference/broken-answer.ts'
import type { UpstreamComplaint } from '#inference/protocol.ts'
import { ApiError, type Verbatim } from '#platform/api-error.ts'
import { PoolFull } from '#platform/origin-pools.ts'

/**
 * What to do about an attempt that failed before its answer began: `again` at the same upstream, at the
 * `next` one, or not at all (`final`), because nobody would take this request.
 */
type Remedy = 'again' | 'next' | 'final'

export type UpstreamFailure = {
  remedy: Remedy
  error: ApiError
  /** What it says about the upstream's health; `unknown`: nothing, it may not even have been asked. */
  health: 'good' | 'bad' | 'unknown'
}

/** An answer that is not 200. */
export function failureOfStatus(
  status: number,
  complaint: UpstreamComplaint | null,
  { retryAfter, verbatim }: { retryAfter: string | undefined; verbatim: Verbatim | null },
): UpstreamFailure {
  const said = complaint ? `: ${complaint.message}` : '.'
  if (status === 429) {
    const headers = retryAfter && /^\d{1,5}$/.test(retryAfter) ? { 'retry-after': retryAfter } : {}
    const error = new ApiError('overloaded', 'The model provider takes no more calls now.', {
      headers,
    })
    return { remedy: 'next', error, health: 'good' }
  }
  if (status === 529 || status === 503) {
    const error = new ApiError('overloaded', 'The model provider is overloaded.')
    return { remedy: 'again', error, health: 'bad' }
  }
  if (status >= 500 || status === 408 || status === 409 || status < 400) {
    const error = new ApiError('upstream_error', `The model provider failed with ${status}.`)
    return { remedy: 'again', error, health: 'bad' }
  }
  // Our own credential or configuration: the caller can do nothing about it, another upstream may.
  if (status === 401 || status === 402 || status === 403 || status === 404) {
    const cause = new Error(`The upstream answered ${status}${said}`)
    const error = new ApiError('upstream_error', 'The model provider refused the gateway.', {
      cause,
    })
    // Only a credential that is refused says something about every other call too.
    return { remedy: 'next', error, health: status === 401 || status === 402 ? 'bad' : 'good' }
  }
  const message = `The model provider refused the request${said}`
  const error = new ApiError('upstream_rejected', message, verbatim ? { verbatim } : {})
  return { remedy: 'final', error, health: 'good' }
}

/** The whole answer took too long. */
export class TotalTimeout extends Error {
  override readonly name = 'TotalTimeout'
}

const timeouts = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])

/** Whatever was thrown while calling, or while reading an answer. */
export function failureOf(thrown: unknown): UpstreamFailure {
  if (thrown instanceof ApiError) {
    const isOurs = thrown.code === 'upstream_rejected'
    return { remedy: isOurs ? 'final' : 'again', error: thrown, health: isOurs ? 'good' : 'bad' }
  }
  if (thrown instanceof PoolFull) {
    const error = new ApiError('overloaded', 'Too many calls to the model provider are open.')
    return { remedy: 'next', error, health: 'unknown' }
  }
  const { code = '' } = Object(thrown) as { code?: string }
  if (timeouts.has(code) || thrown instanceof TotalTimeout) {
    const message = 'The model provider did not answer in time.'
    const error = new ApiError('upstream_timeout', message, { cause: thrown })
    return { remedy: 'next', error, health: 'bad' }
  }
  const message =
    thrown instanceof BrokenAnswer
      ? 'The model provider sent something that is not an answer.'
      : 'The connection to the model provider broke.'
  return {
    remedy: 'again',
    error: new ApiError('upstream_error', message, { cause: thrown }),
    health: 'bad',
  }
}
