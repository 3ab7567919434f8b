/** Retries that each call adds to the budget, and the most that the budget can hold. */
const retriesPerCall = 0.1
const retriesMax = 10

/**
 * Keeps retries from making an overload worse: every call adds a tenth of a retry, so an upstream that always
 * fails gets a tenth more calls, and not twice as many.
 */
export function createRetryBudget() {
  let retries = retriesMax
  return {
    noteCall() {
      retries = Math.min(retriesMax, retries + retriesPerCall)
    },
    mayRetry(): boolean {
      if (retries < 1) return false
      retries -= 1
      return true
    },
  }
}
