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
  const timer = setTimeout(() => {
    const error = late()
    givingUp.abort(error)
    deadline.reject(error)
  }, deadlineMs)
  try {
    return await Promise.race([work(givingUp.signal), deadline.promise])
  } finally {
    clearTimeout(timer)
  }
}
