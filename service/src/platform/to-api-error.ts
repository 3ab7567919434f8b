import { ApiError, dependencyUnavailable } from './api-error.ts'
import { ClientGone } from './client-gone.ts'

/** Turns anything thrown into an ApiError; an unexpected error becomes a 500 without details. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown
  return (
    fromHttp(thrown) ??
    (isStoreAway(thrown) ? dependencyUnavailable('database', thrown) : undefined) ??
    new ApiError('internal_error', 'The gateway failed unexpectedly.', { cause: thrown })
  )
}

function codeOf(thrown: unknown): string {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
}

/** The errors that the HTTP layer itself throws, before or instead of a handler. */
function fromHttp(cause: unknown): ApiError | undefined {
  switch (isHangUp(cause) ? 'hang-up' : codeOf(cause)) {
    case 'hang-up':
      // No client reads this answer; its code appears in the log line.
      return new ApiError('invalid_request', 'The request was cut off.', { cause })
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiError('request_too_large', 'The body is larger than this endpoint accepts.', {
        cause,
      })
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new ApiError('invalid_request', 'The body is shorter or longer than Content-Length.', {
        cause,
      })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ApiError(
        'invalid_content_type',
        'The Content-Type is malformed; send application/json.',
        { cause },
      )
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new ApiError('url_too_long', 'The URL is longer than 8 KiB.', { cause })
    case 'FST_ERR_BAD_URL':
      return new ApiError('invalid_request', 'The path has an invalid percent-encoding.', { cause })
    default:
      return undefined
  }
}

/** Whether the client disconnected while sending. The code alone, ECONNRESET, could also be the database's. */
function isHangUp(thrown: unknown): boolean {
  if (thrown instanceof ClientGone) return true
  const isAbort = thrown instanceof Error && thrown.message === 'aborted'
  return isAbort || codeOf(thrown) === 'ERR_STREAM_PREMATURE_CLOSE'
}

/** SQLSTATE classes and codes that mean "try again later", not "this is wrong". */
const awayStates = /^(08|28|53|57P|58|25006$|25P0[34]$|3D000$|55000$|55P03$|57014$|40001$|40P01$)/
const awaySystemCode =
  /^(E(CONN(REFUSED|RESET|ABORTED)|PIPE|TIMEDOUT|HOST(UNREACH|DOWN)|NETUNREACH|NOTFOUND|AI_AGAIN)$|ERR_TLS_|CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_)/
/** The driver reports some losses with a sentence only. */
const awaySentences =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Cannot use a pool after)/

/** Whether the error means that PostgreSQL is unreachable or cannot answer in time. */
export function isStoreAway(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false
  if (thrown instanceof AggregateError) return thrown.errors.some(isStoreAway)
  const code = codeOf(thrown)
  return awaySystemCode.test(code) || awayStates.test(code) || awaySentences.test(thrown.message)
}
