/**
 * In how many more turns of the event loop an answer may arrive after its deadline. A turn takes no time if the process
 * has nothing else to do. If it is busy, a request may be written in one turn and its answer read in the next: then this
 * process is late, and not the one that it asks.
 */
const turnsAfterDeadline = 3

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
  let turnsLeft = turnsAfterDeadline
  const giveUp = () => {
    if (isDone) return
    if (turnsLeft-- > 0) {
      setImmediate(giveUp)
      return
    }
    const error = createError()
    aborting.abort(error)
    deadline.reject(error)
  }
  const timer = setTimeout(giveUp, deadlineMs)
  try {
    return await Promise.race([work(aborting.signal), deadline.promise])
  } finally {
    isDone = true
    clearTimeout(timer)
  }
}
