/** Share of calls that may be repeated, and how many repetitions can be saved up. */
const perCall = 0.1
const savedMax = 10

/**
 * Keeps retries from making an overload worse: every call saves up a tenth of a repetition, so an upstream
 * that fails always gets a tenth more calls, not twice as many.
 */
export function createRetryBudget() {
  let saved = savedMax
  return {
    noteCall() {
      saved = Math.min(savedMax, saved + perCall)
    },
    mayRetry(): boolean {
      if (saved < 1) return false
      saved -= 1
      return true
    },
  }
}
