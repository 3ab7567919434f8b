/**
 * In how many more turns of the event loop an answer may arrive after its deadline. A turn takes no time if the process
 * has nothing else to do. If it is busy, a request may be written in one turn and its answer read in the next: then this
 * process is late, and not the one that it asks.
 */
const turnsAfterDeadline = 3

/**
 * For one call: rejects with the error of `createError` when the work takes longer than `deadlineMs`, and with the reason of `outer`
 * when that aborts. The work is not stopped; its `signal` aborts.
 */
export async function within<T>(
  deadlineMs: number,
  createError: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  outer?.throwIfAborted()
  const aborting = new AbortController()
  const ended = Promise.withResolvers<never>()
  let isDone = false
  let turnsLeft = turnsAfterDeadline
  const end = (error: Error) => {
    aborting.abort(error)
    ended.reject(error)
  }
  const giveUp = () => {
    if (isDone) return
    if (turnsLeft-- > 0) setImmediate(giveUp)
    else end(createError())
  }
  // A signal of `AbortSignal.any` that is listened to would be kept for as long as the outer one.
  const follow = () => end(outer?.reason as Error)
  outer?.addEventListener('abort', follow, { once: true })
  const timer = setTimeout(giveUp, deadlineMs)
  try {
    return await Promise.race([work(aborting.signal), ended.promise])
  } finally {
    isDone = true
    clearTimeout(timer)
    outer?.removeEventListener('abort', follow)
  }
}

export type Deadline = { readonly atMs: number; onLate(): void }

/**
 * For many calls: deadlines that all come after the same time, with one timer for all of them. A call costs no timer and no signal
 * of its own. Deadlines that move, and may be late, are in a wheel (`calls/timer-wheel.ts`).
 */
export function createDeadlines(maxMs: number) {
  /** In the order in which they come. */
  const open = new Set<Deadline>()
  let isWatching = false

  function watch(ms: number) {
    isWatching = true
    // It may run on after the last deadline was taken back, and must not keep a process alive that has ended its work.
    setTimeout(() => waitTurns(turnsAfterDeadline, performance.now()), ms).unref()
  }
  function waitTurns(turns: number, nowMs: number) {
    if (turns > 0) setImmediate(waitTurns, turns - 1, nowMs)
    else endThoseBefore(nowMs)
  }
  function endThoseBefore(nowMs: number) {
    isWatching = false
    for (const deadline of open) {
      if (deadline.atMs > nowMs) {
        watch(Math.ceil(deadline.atMs - nowMs))
        return
      }
      open.delete(deadline)
      deadline.onLate()
    }
  }

  /** Calls `onLate` when the time has passed, unless the deadline is taken back before. */
  function set(onLate: () => void): Deadline {
    const deadline = { atMs: performance.now() + maxMs, onLate }
    open.add(deadline)
    if (!isWatching) watch(maxMs)
    return deadline
  }
  const takeBack = (deadline: Deadline) => void open.delete(deadline)

  return {
    set,
    takeBack,
    /** Rejects when the time has passed and the work has not ended. The work goes on. */
    within: <T>(work: Promise<T>, createError: () => Error): Promise<T> =>
      new Promise((resolve, reject) => {
        const deadline = set(() => reject(createError()))
        work.then(
          (result) => {
            takeBack(deadline)
            resolve(result)
          },
          (error: unknown) => {
            takeBack(deadline)
            reject(error)
          },
        )
      }),
  }
}
