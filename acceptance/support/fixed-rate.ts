/**
 * Sends at a fixed rate, whatever the answers do, and returns how long each took in milliseconds,
 * sorted. A server that falls behind cannot slow the sender down and so hide it.
 */
export async function atFixedRate(
  { perSecond, seconds }: { perSecond: number; seconds: number },
  send: (index: number) => Promise<unknown>,
): Promise<number[]> {
  const startedAt = performance.now()
  const running = Array.from({ length: perSecond * seconds }, async (_, index) => {
    const dueAt = startedAt + (index * 1000) / perSecond
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueAt - performance.now())))
    // The timer's own lateness is the test's, not the server's.
    const sentAt = performance.now()
    await send(index)
    return performance.now() - sentAt
  })
  return (await Promise.all(running)).toSorted((left, right) => left - right)
}

export const percentile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Infinity
