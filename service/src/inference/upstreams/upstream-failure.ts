import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { UpstreamComplaint } from '#formats/format.ts'
import { nothingSaid, ProviderError } from '#formats/provider-failure.ts'
import { ApiError } from '#platform/api-error.ts'
import { PoolFull } from '#platform/origin-pools.ts'
import { BeyondLimits } from '#policies/guard/guard-end.ts'

/**
 * How an attempt that failed before its answer started may be repeated: `again` at the same upstream, at the
 * `next` one, or not at all (`final`), because every upstream would refuse the request.
 */
type Remedy = 'again' | 'next' | 'final'

export type UpstreamFailure = {
  remedy: Remedy
  error: ApiError
  /**
   * The health of the upstream. `bad`: this request may be the cause. `unreachable`: no request would be answered.
   * `unknown`: the request may not even have been sent.
   */
  health: 'good' | 'bad' | 'unreachable' | 'unknown'
}

/** Thrown by an attempt that did not start an answer. */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly failure: UpstreamFailure
  constructor(failure: UpstreamFailure) {
    super(failure.error.message, { cause: failure.error })
    this.failure = failure
  }
}

/** The failure for an answer that is not 200. */
export function toStatusFailure(
  status: number,
  complaint: UpstreamComplaint | null,
  { retryAfter, requestId }: { retryAfter: string | undefined; requestId: string | undefined },
): UpstreamFailure {
  const reason = complaint ? `: ${complaint.message}` : '.'
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
  // The gateway's own credential or configuration is at fault. Another upstream may have a good one.
  if (status === 401 || status === 402 || status === 403 || status === 404) {
    const cause = new Error(`The upstream answered ${status}${reason}`)
    const error = new ApiError('upstream_error', 'The model provider refused the gateway.', {
      cause,
    })
    // A refused credential affects every other call; the others may concern this request alone.
    const isCredential = status === 401 || status === 402
    return { remedy: 'next', error, health: isCredential ? 'unreachable' : 'good' }
  }
  return { remedy: 'final', error: toRejection(status, complaint, requestId), health: 'good' }
}

/** Statuses by which providers reject a request; callers get any other one as 400. */
const rejectionStatuses: readonly number[] = [400, 413, 422]

function toRejection(
  status: number,
  complaint: UpstreamComplaint | null,
  requestId: string | undefined,
): ApiError {
  // The provider's id is repeated only if a header can carry it.
  const isSafe = requestId !== undefined && /^[\x21-\x7e]{1,200}$/.test(requestId)
  return new ProviderError(complaint ?? nothingSaid, ({ type, code, param = null, ...said }) => {
    const message = said.message || `The model provider refused the request with ${status}.`
    return [
      'upstream_rejected',
      message,
      {
        rejection: {
          status: rejectionStatuses.includes(status) ? status : 400,
          message,
          type,
          code,
          param,
        },
        ...(isSafe && { headers: { 'x-upstream-request-id': requestId } }),
      },
    ]
  })
}

/** More than any model writes. A plain answer is in memory twice: as it arrived and as it is sent. */
export const plainMaxBytes = 32 * 1024 * 1024

export const answerTooLarge = () =>
  new ApiError('upstream_error', 'The answer of the model provider is too large.', {
    cause: new BeyondLimits('The answer is longer than a plain answer can be.'),
  })

/** The answer was not complete within `total_timeout_ms`. */
export class TotalTimeout extends Error {
  override readonly name = 'TotalTimeout'
}

const timeouts = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])

/** No connection was made, so the request cannot be the cause. */
const notConnected =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_|CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_)/

/** The failure for an error that was thrown while an upstream was called or its answer was read. */
export function toFailure(thrown: unknown): UpstreamFailure {
  if (thrown instanceof ApiError) {
    const isRejected = thrown.code === 'upstream_rejected'
    return {
      remedy: isRejected ? 'final' : 'again',
      error: thrown,
      health: isRejected ? 'good' : 'bad',
    }
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
    health: notConnected.test(code) ? 'unreachable' : 'bad',
  }
}
