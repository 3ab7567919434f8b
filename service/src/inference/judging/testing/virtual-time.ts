import { setImmediate } from 'node:timers/promises'

import { vi } from 'vitest'

/** So many turns of the event loop in which nothing happens and no timer is set mean that nothing will. */
const idleTurnsMost = 10_000
const busyMs = 4

/**
 * Runs work whose timers never really wait: when everything else is done, the next of them is over. `Date` tells the time that
 * has passed in this way.
 */
export async function inVirtualTime<Result>(work: () => Promise<Result>): Promise<Result> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  let isDone = false
  const result = work().finally(() => {
    isDone = true
  })
  result.catch(() => {}) // thrown below
  try {
    for (let idleTurns = 0; !isDone; idleTurns++) {
      const sinceMs = performance.now()
      await setImmediate()
      // Long work is done in turns of several milliseconds, and goes on in the next one.
      if (performance.now() - sinceMs > busyMs) continue
      if (vi.getTimerCount() > 0) idleTurns = 0
      if (idleTurns > idleTurnsMost)
        throw new Error('The work waits for something without a timer.')
      vi.advanceTimersToNextTimer()
    }
    return await result
  } finally {
    vi.useRealTimers()
  }
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
