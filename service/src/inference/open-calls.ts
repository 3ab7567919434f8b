/** Counts the open calls, so that a stopping process can wait for them. A call whose caller has hung up can still be open. */
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
    /** The caller must dispose of the result exactly once, when the call has ended. */
    begin(): Disposable {
      open += 1
      return call
    },
    /** Resolves when no call is open, or after `maxMs` at the latest. */
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
