type Reader = { received: () => number; onTooSlow: () => void }

const checkEveryMs = 1000
const graceMs = 10_000
const bytesPerMsMin = (16 * 1024) / 1000

/** Ends readers whose sender is too slow: after ten seconds, the average since the start must be 16 KiB a second. */
export function createPaceWatch() {
  const readers = new Map<Reader, number>()
  const timer = setInterval(() => {
    const nowMs = performance.now()
    for (const [reader, startedAtMs] of readers) {
      const elapsedMs = nowMs - startedAtMs
      const isTooSlow = elapsedMs > graceMs && reader.received() / elapsedMs < bytesPerMsMin
      if (isTooSlow) reader.onTooSlow()
    }
  }, checkEveryMs)
  timer.unref()
  return {
    /** Returns how to end the watch. */
    add(reader: Reader): () => void {
      readers.set(reader, performance.now())
      return () => void readers.delete(reader)
    },
    stop: () => clearInterval(timer),
  }
}
export type PaceWatch = ReturnType<typeof createPaceWatch>
