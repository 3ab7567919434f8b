import { setImmediate } from 'node:timers/promises'

import { vi } from 'vitest'

import { isWorkWaiting } from '#platform/steps/shared-turns.ts'

/** After this many turns of the event loop without work and without a timer, nothing more will happen. */
const idleTurnsMost = 10_000

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
      await setImmediate()
      // Long work is done in slices, and takes no virtual time.
      if (isWorkWaiting()) {
        idleTurns = 0
        continue
      }
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
