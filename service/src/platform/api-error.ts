import { type ErrorCode, errors, type ErrorType } from '@gatehouse/contract/error'
import type {
  DecidingPolicy,
  Failure,
  FailingExample,
  ProviderRejection,
  SchemaViolation,
} from '@gatehouse/contract/error-body'

type Details = {
  param?: string
  headers?: Record<string, string>
  cause?: unknown
  violations?: readonly SchemaViolation[]
  /** With the code `upstream_rejected`. */
  rejection?: ProviderRejection
  /** With the code `examples_failing`. */
  failing?: readonly FailingExample[]
  /** With codes by which policies refuse. */
  policy?: DecidingPolicy
  /** Whom the caller can ask, in the words of the organization: follows the message. */
  contact?: string | undefined
  /** For clients that know more than the code: see Failure. */
  details?: Readonly<Record<string, unknown>>
  /** What has refused a call that leaves no event. */
  refusedBy?: RefusedBy
}

/** Of which scope the limit is that was reached, and what it counts. */
type RefusedBy = { readonly scope: string; readonly metric: string }

/** Whose call was refused, where the error is about the caller's own credential. */
type RefusedCaller = {
  readonly organizationId: string
  readonly projectId: string | null
  readonly credentialId: string
}

const messageMaxLength = 300

/** The only error a caller may see. `message` is public; `cause` goes to the log and nowhere else. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly type: ErrorType
  readonly status: number
  readonly param: string | null
  readonly headers: Record<string, string>
  readonly violations: readonly SchemaViolation[] | undefined
  readonly rejection: ProviderRejection | undefined
  readonly failing: readonly FailingExample[] | undefined
  readonly policy: DecidingPolicy | undefined
  readonly details: Details['details'] | undefined
  readonly refusedBy: RefusedBy | undefined
  /** Set by what knows the caller whose credential it does not accept. */
  refusedCaller: RefusedCaller | undefined

  constructor(code: ErrorCode, message: string, details: Details = {}) {
    const { status, type } = errors[code]
    const bounded = message.slice(0, messageMaxLength)
    const whole = details.contact === undefined ? bounded : `${bounded} ${details.contact}`
    super(whole.toWellFormed(), { cause: details.cause })
    this.name = 'ApiError'
    this.code = code
    this.type = type
    this.status = details.rejection?.status ?? status
    this.param = details.param?.toWellFormed() ?? null
    this.headers = { ...headersFor(code, status), ...details.headers }
    this.violations = details.violations
    this.rejection = details.rejection
    this.failing = details.failing
    this.policy = details.policy
    this.details = details.details
    this.refusedBy = details.refusedBy
  }
}

/** The official SDKs retry every 409 unless a header forbids it; 429 and 503 say when to retry. */
function headersFor(code: ErrorCode, status: number): Record<string, string> {
  // Callers can tell the provider's words from ours, whatever code it gave.
  if (code === 'upstream_rejected') return { 'x-gatehouse-error': code }
  if (code === 'idempotency_in_progress') return { 'retry-after': '1' }
  if (status === 409) return { 'x-should-retry': 'false' }
  // 529 becomes 503 in most dialects.
  return [429, 503, 529].includes(status) ? { 'retry-after': '1' } : {}
}

/** What every body and every last frame of a stream says of an error. */
export function failureOf(error: ApiError, requestId: string): Failure {
  const { code, type, status, message, param, policy, details } = error
  return {
    code,
    type,
    status,
    message,
    param,
    requestId,
    docUrl: null,
    ...(policy && { policy }),
    ...(details && { details }),
  }
}

export const dependencyUnavailable = (what: string, cause?: unknown) =>
  unavailable(`The ${what} cannot be reached at the moment; retry later.`, cause)

/** A 503 with a message of its own. */
export const unavailable = (message: string, cause?: unknown) =>
  new ApiError('dependency_unavailable', message, { headers: { 'retry-after': '2' }, cause })

const notFoundMessages = {
  project: 'Your organization has no project with this id.',
  api_key: 'There is no active key with this id here.',
  policy: 'Your organization has no policy with this id.',
  export: 'Your organization has no export sink with this id.',
  guardrail: 'Your organization has no guardrail with this id.',
  member: 'There is no member with this id here.',
  session: 'The member has no session with this id, or it has ended.',
  approval: 'You have given no approval with this id.',
  proposal: 'Your organization has no open proposal with this id.',
}

export const notFound = (what: keyof typeof notFoundMessages) =>
  new ApiError(`${what}_not_found`, notFoundMessages[what])

type RateLimit = {
  /** What was counted, such as 'requests'. */
  what: string
  /** What it was counted by, such as 'organization'. */
  where: string
  limit: number
  waitMs: number
  now: Date
  scope?: 'credential' | 'organization'
  metric?: 'requests' | 'concurrent_requests'
  /** Whether the refused call leaves an event. */
  hasEvent?: boolean
}

/** A 429 whose message and headers say which limit was reached and when to retry. */
export function rateLimitExceeded(refusal: RateLimit) {
  const { what, where, limit, waitMs, now, scope = 'credential', metric = 'requests' } = refusal
  const { hasEvent = false } = refusal
  const waitSeconds = Math.max(1, Math.ceil(waitMs / 1000))
  return new ApiError(
    metric === 'requests' ? 'rate_limit_exceeded' : 'concurrency_limit_exceeded',
    `Rate limit reached for ${what} on ${where}: limit ${limit}. Retry after ${waitSeconds}s.`,
    {
      ...(!hasEvent && { refusedBy: { scope, metric } }),
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
