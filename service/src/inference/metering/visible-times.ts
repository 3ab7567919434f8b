import type { Clock } from '#platform/clock.ts'

/**
 * When an answer showed something and when it did not. A model that reasons is silent, or shows a summary of its reasoning,
 * before the first word of its answer. It may also fall silent again after any later word.
 */
export function createVisibleTimes(now: Clock) {
  const read = () => now().getTime()
  let sentAtMs = read()
  let firstWordAtMs: number | undefined
  let lastAtMs: number | undefined
  let endedAtMs: number | undefined
  let pieceAtMs: number | undefined

  return {
    noteSent() {
      sentAtMs = read()
    },
    /** What follows has arrived at the same time, so the clock is read at most once. */
    startPiece() {
      pieceAtMs = undefined
    },
    noteText(isReasoning: boolean) {
      pieceAtMs ??= read()
      lastAtMs = pieceAtMs
      if (!isReasoning) firstWordAtMs ??= lastAtMs
    },
    /** The first call fixes the end. */
    end() {
      endedAtMs ??= read()
    },
    tookMs: () => (endedAtMs ?? read()) - sentAtMs,
    /** The time to the first word of the answer, and since the last text of any kind. */
    hiddenMs(): number {
      const endMs = endedAtMs ?? read()
      if (firstWordAtMs === undefined) return endMs - sentAtMs
      return firstWordAtMs - sentAtMs + (endMs - (lastAtMs ?? endMs))
    },
  }
}
