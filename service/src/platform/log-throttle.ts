import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

const quietMs = 10_000

/** Logs a problem that every call repeats, at most once in ten seconds. */
export function createLogThrottle({ log, now }: { log: Log; now: Clock }) {
  let loggedAtMs = -Infinity
  return (code: string, error: unknown) => {
    const nowMs = now().getTime()
    if (Math.abs(nowMs - loggedAtMs) < quietMs) return
    loggedAtMs = nowMs
    log.problem(code, error)
  }
}
