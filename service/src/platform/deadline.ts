/**
 * Ends a wait that lasts too long with the error that `late` makes. The work itself goes on: it learns
 * through `signal` that nobody waits for it any more.
 */
export async function within<T>(
  deadlineMs: number,
  late: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const givingUp = new AbortController()
  const deadline = Promise.withResolvers<never>()
  let isOver = false
  const giveUp = () => {
    if (isOver) return
    const error = late()
    givingUp.abort(error)
    deadline.reject(error)
  }
  // When it was we who stood still, the answer may lie here unread: what has arrived is read first.
  const timer = setTimeout(() => setImmediate(giveUp), deadlineMs)
  try {
    return await Promise.race([work(givingUp.signal), deadline.promise])
  } finally {
    isOver = true
    clearTimeout(timer)
  }
}
