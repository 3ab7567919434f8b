import { type ErrorCode, errors, type ErrorType } from '@gatehouse/contract/error'
import type { Dialect, SchemaViolation } from '@gatehouse/contract/error-body'

type Details = {
  param?: string
  headers?: Record<string, string>
  cause?: unknown
  violations?: readonly SchemaViolation[]
  verbatim?: Verbatim
  /** For clients that know more than the code: see Failure. */
  details?: Readonly<Record<string, unknown>>
}

/** A refusal in somebody else's words, for callers who speak that dialect and know the words. */
export type Verbatim = { dialect: Dialect; status: number; body: string }

const messageMaxLength = 300

/** The only error a caller may see. `message` is public; `cause` goes to the log and nowhere else. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly type: ErrorType
  readonly status: number
  readonly param: string | null
  readonly headers: Record<string, string>
  readonly violations: readonly SchemaViolation[] | undefined
  readonly verbatim: Verbatim | undefined
  readonly details: Details['details'] | undefined

  constructor(code: ErrorCode, message: string, details: Details = {}) {
    const { status, type } = errors[code]
    super(message.slice(0, messageMaxLength).toWellFormed(), { cause: details.cause })
    this.name = 'ApiError'
    this.code = code
    this.type = type
    this.status = status
    this.param = details.param?.toWellFormed() ?? null
    this.headers = { ...retryAdvice(code, status), ...details.headers }
    this.violations = details.violations
    this.verbatim = details.verbatim
    this.details = details.details
  }
}

/** The official SDKs retry any 409 unless told otherwise (G3.9); 429 and 503 say when (G7.16). */
function retryAdvice(code: ErrorCode, status: number): Record<string, string> {
  if (code === 'idempotency_in_progress') return { 'retry-after': '1' }
  if (status === 409) return { 'x-should-retry': 'false' }
  // 529 is a 503 in most families.
  return [429, 503, 529].includes(status) ? { 'retry-after': '1' } : {}
}

export const dependencyUnavailable = (what: string, cause?: unknown) =>
  new ApiError('dependency_unavailable', `The ${what} cannot be reached at the moment.`, {
    headers: { 'retry-after': '2' },
    cause,
  })

export const notFound = (what: 'project' | 'api_key' | 'policy') =>
  new ApiError(
    `${what}_not_found`,
    `Your organization has no such ${what === 'api_key' ? 'active key here' : what}.`,
  )

type RateLimit = {
  what: string
  where: string
  limit: number
  waitMs: number
  now: Date
  scope?: 'credential' | 'organization'
  metric?: 'requests' | 'concurrent_requests'
}

/** A 429 that says what was counted, where, and when to come back (contract 8.4, G7.17). */
export function rateLimitExceeded(refusal: RateLimit) {
  const { what, where, limit, waitMs, now, scope = 'credential', metric = 'requests' } = refusal
  const waitSeconds = Math.max(1, Math.ceil(waitMs / 1000))
  return new ApiError(
    metric === 'requests' ? 'rate_limit_exceeded' : 'concurrency_limit_exceeded',
    `Rate limit reached for ${what} on ${where}: limit ${limit}. Retry after ${waitSeconds}s.`,
    {
      headers: {
        'retry-after': String(waitSeconds),
        'x-ratelimit-limit': String(limit),
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': String(Math.ceil((now.getTime() + waitMs) / 1000)),
        'x-ratelimit-scope': scope,
        'x-ratelimit-metric': metric,
      },
    },
  )
}

export const limitReached = (what: string, limit: number) =>
  new ApiError('limit_reached', `There can be at most ${limit} ${what}; remove one first.`)
