/** A call in progress. */
export type Work<T> = {
  readonly result: Promise<T>
  /** Why there is no result so far, if more is known than that a caller's time is over. */
  hindrance(): Error | undefined
}
type Flight<T> = Work<T> & { aborting: AbortController; followers: number }

/**
 * Makes one call for all callers that ask the same thing at the same time. The call ends early only when no caller waits for it
 * any more: a caller that gives up must not take the answer from the others.
 */
export function createSharedCalls<T>() {
  const flights = new Map<string, Flight<T>>()

  function start(key: string, work: (signal: AbortSignal) => Work<T>): Flight<T> {
    const aborting = new AbortController()
    const flight = { ...work(aborting.signal), aborting, followers: 0 }
    flights.set(key, flight)
    const remove = () => {
      if (flights.get(key) === flight) flights.delete(key)
    }
    // The waiting callers get the failure; here it only ends the call.
    flight.result.then(remove, remove)
    return flight
  }

  return async (
    key: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Work<T>,
  ): Promise<T> => {
    signal.throwIfAborted()
    const flight = flights.get(key) ?? start(key, work)
    flight.followers++
    const givenUp = Promise.withResolvers<never>()
    const giveUp = () => givenUp.reject(flight.hindrance() ?? signal.reason)
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      return await Promise.race([flight.result, givenUp.promise])
    } finally {
      signal.removeEventListener('abort', giveUp)
      if (--flight.followers === 0) {
        if (flights.get(key) === flight) flights.delete(key)
        flight.aborting.abort(signal.reason)
      }
    }
  }
}
