/**
 * Computes how long work must rest so that it takes at most `share` of the elapsed time. Each piece of work pays for itself: a
 * task that was idle for an hour has saved nothing up and does not burst afterwards. The rests that overlapping pieces of work
 * owe are added up, and so is the rest that was cut short. No rest is longer than `restMaxMs`, and the remainder is forgotten:
 * a step that waited for a lock, or in a paused process, must not stop its task for long.
 */
export function createPace(share: number, restMaxMs: number) {
  let freeAtMs = -Infinity
  /** Records `workedMs` of work that ended at `nowMs`. Returns how long to rest from then on. */
  return (workedMs: number, nowMs: number): number => {
    const owedUntilMs = Math.max(freeAtMs, nowMs - workedMs) + workedMs / share
    freeAtMs = Math.min(owedUntilMs, nowMs + restMaxMs)
    return Math.max(0, freeAtMs - nowMs)
  }
}
