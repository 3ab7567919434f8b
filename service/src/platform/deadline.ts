/**
 * Rejects with the error of `createError` when the work takes longer than `deadlineMs`. The work is not
 * stopped; its `signal` aborts.
 */
export async function within<T>(
  deadlineMs: number,
  createError: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const aborting = new AbortController()
  const deadline = Promise.withResolvers<never>()
  let isDone = false
  const giveUp = () => {
    if (isDone) return
    const error = createError()
    aborting.abort(error)
    deadline.reject(error)
  }
  // After a blocked event loop the answer may have arrived but not been read: I/O runs before setImmediate.
  const timer = setTimeout(() => setImmediate(giveUp), deadlineMs)
  try {
    return await Promise.race([work(aborting.signal), deadline.promise])
  } finally {
    isDone = true
    clearTimeout(timer)
  }
}
