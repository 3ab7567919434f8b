/** A device that waits for its session. */
type Waiting = {
  interval_seconds: number
  polled_at: Date | null
  expires_at: Date
  refused_at: Date | null
  session_id: string | null
}

type Judgement =
  | 'expired_token'
  | 'slow_down'
  | 'access_denied'
  | 'authorization_pending'
  /** A person has confirmed it: the session can be started. */
  | 'confirmed'

/** How much too early a program may ask: networks do not keep time. */
const toleranceMs = 500

/** What a program that asks for its session gets now (RFC 8628, 3.5). */
export function judgePoll(
  { interval_seconds, polled_at, expires_at, refused_at, session_id }: Waiting,
  now: Date,
): Judgement {
  if (expires_at <= now) return 'expired_token'
  const passedMs = polled_at ? now.getTime() - polled_at.getTime() : Infinity
  if (passedMs < interval_seconds * 1000 - toleranceMs) return 'slow_down'
  if (refused_at) return 'access_denied'
  return session_id === null ? 'authorization_pending' : 'confirmed'
}

const intervalMaxSeconds = 60

/** What a program has to wait from then on that asks too often. */
export const slowerThan = (seconds: number) => Math.min(seconds + 5, intervalMaxSeconds)
