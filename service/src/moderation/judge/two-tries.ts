export type TwoTries<T> = {
  /** Makes a try. It ends when its signal aborts. */
  begin(signal: AbortSignal): Promise<T>
  /** Whether there is room for the second try now. */
  mayBeginSecond(): boolean
  /** Whether a second try could help after this failure. */
  isWorthRetrying(error: unknown): boolean
  /** Whether this failure is the result even if the other try is still running. */
  isFinal(error: unknown): boolean
  /** After this long without an answer the second try begins beside the first. */
  hedgeMs: number
  signal: AbortSignal
}

/**
 * Returns the first answer of two tries. The second try begins when the first has failed or is slow: the slowest answers of a
 * model server are mostly those of one overloaded machine. The other try is then ended.
 */
export function firstOfTwo<T>(tries: TwoTries<T>): Promise<T> {
  const { begin, mayBeginSecond, isWorthRetrying, isFinal, hedgeMs, signal } = tries
  const ending = new AbortController()
  const both = AbortSignal.any([signal, ending.signal])
  return new Promise((resolve, reject) => {
    let open = 0
    let hasSecond = false

    function tryOnce() {
      open++
      begin(both).then(
        (result) => {
          end()
          resolve(result)
        },
        (error: unknown) => {
          open--
          if (isWorthRetrying(error) && tryAgain()) return
          if (open > 0 && !isFinal(error)) return
          end()
          reject(error as Error)
        },
      )
    }
    function tryAgain(): boolean {
      if (hasSecond || both.aborted || !mayBeginSecond()) return false
      hasSecond = true
      tryOnce()
      return true
    }
    function end() {
      clearTimeout(timer)
      ending.abort(new Error('The other try has answered.'))
    }

    const timer = setTimeout(tryAgain, hedgeMs)
    tryOnce()
  })
}
