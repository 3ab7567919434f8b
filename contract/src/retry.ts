export type RetrySettings = {
  /** How often a call is sent at most, the first time included; 1: it is never repeated. */
  attemptsMax: number
  /** How long a call may take with all of its repetitions; a wait that would be longer is not begun. */
  totalMs: number
  /** The first wait where the service does not say how long; it doubles each time, up to `backoffMaxMs`. */
  backoffMs: number
  backoffMaxMs: number
  /** The longest random delay after a wait that the service asked for: others were told to wait as long. */
  jitterMs: number
}

/** Long enough for the rate limits of a minute. */
export const defaultRetry: RetrySettings = {
  attemptsMax: 4,
  totalMs: 90_000,
  backoffMs: 500,
  backoffMaxMs: 8000,
  jitterMs: 500,
}

/** The service has not begun the request, or cannot say how it ended: the same request may be sent again later. */
export const isRetryable = (status: number, code: string) =>
  [429, 503, 529].includes(status) || code === 'idempotency_in_progress'

/** How long to wait before the next attempt; `random` is from 0 to 1, as of Math.random. */
export function waitBeforeRetry(
  { attempt, retryAfterMs }: { attempt: number; retryAfterMs: number | null },
  { backoffMs, backoffMaxMs, jitterMs }: RetrySettings,
  random: number,
): number {
  if (retryAfterMs !== null) return retryAfterMs + random * jitterMs
  const longest = Math.min(backoffMaxMs, backoffMs * 2 ** (attempt - 1))
  return longest / 2 + (random * longest) / 2
}

/** Reads a Retry-After header, which is a number of seconds or a date; null when it is neither. */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  const text = header?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  // Date.parse takes much that is no date of HTTP, such as '-5'.
  const dateMs = /^[A-Z][a-z]{2,8},? .*GMT$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(dateMs) ? null : Math.max(0, dateMs - nowMs)
}

const connectionFailures = new Set([
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_SOCKET',
])

/** Whether fetch failed on the way, not for a reason that would be there again, such as a bad certificate. */
export function isConnectionFailure(error: unknown): boolean {
  if (!(error instanceof TypeError)) return false
  // Node names the reason in the cause; browsers name none.
  if (error.cause === undefined) return true
  const { code } = Object(error.cause) as { code?: unknown }
  return typeof code === 'string' && connectionFailures.has(code)
}
