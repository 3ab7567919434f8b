type Reader = { received: () => number; onTooSlow: () => void }

/** Short, so that each check ends only a few readers. Ending hundreds at once would delay other calls. */
const checkEveryMs = 100
const graceMs = 10_000
const bytesPerMsMin = (16 * 1024) / 1000

/** Ends readers whose sender is too slow: after ten seconds, the average since the start must be 16 KiB a second. */
export function createPaceWatch() {
  /** When each started, oldest first. */
  const readers = new Map<Reader, number>()
  const timer = setInterval(() => {
    const nowMs = performance.now()
    for (const [reader, startedAtMs] of readers) {
      const elapsedMs = nowMs - startedAtMs
      if (elapsedMs <= graceMs) break // all later readers are younger still
      if (reader.received() / elapsedMs >= bytesPerMsMin) continue
      readers.delete(reader)
      reader.onTooSlow()
    }
  }, checkEveryMs)
  timer.unref()
  return {
    /** Returns a function that ends the watch. */
    add(reader: Reader): () => void {
      readers.set(reader, performance.now())
      return () => void readers.delete(reader)
    },
    stop: () => clearInterval(timer),
  }
}
export type PaceWatch = ReturnType<typeof createPaceWatch>
