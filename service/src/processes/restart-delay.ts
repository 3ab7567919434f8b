const firstMs = 100
const maxMs = 10_000
/** A process that has served this long is healthy: when it ends now, that is unrelated to the ends before. */
const healthyMs = 60_000

/** How long to wait before a process is started again: longer with each end, as long as it never becomes healthy. */
export function createRestartDelay() {
  let ends = 0
  return {
    /** `servedMs`: how long the process had served; 0 if it never did. */
    next(servedMs: number): number {
      ends = servedMs >= healthyMs ? 1 : ends + 1
      return Math.min(firstMs * 2 ** (ends - 1), maxMs)
    },
  }
}
