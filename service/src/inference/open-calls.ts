/** Counts the calls that are open, also those whose caller has hung up, so that a process that stops can wait for them. */
export function createOpenCalls() {
  let open = 0
  let onNone: (() => void) | undefined
  const call: Disposable = {
    [Symbol.dispose]() {
      open -= 1
      if (open === 0) onNone?.()
    },
  }
  return {
    /** Dispose of what it returns when the call has ended, exactly once. */
    begin(): Disposable {
      open += 1
      return call
    },
    /** Resolves when no call is open, at the latest after `maxMs`. */
    ended(maxMs: number): Promise<void> {
      if (open === 0) return Promise.resolve()
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, maxMs)
        onNone = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
  }
}
export type OpenCalls = ReturnType<typeof createOpenCalls>
