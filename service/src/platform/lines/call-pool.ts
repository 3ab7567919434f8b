import { createFairLine } from './fair-line.ts'

type Waiting = { begin(): void }

type Options = {
  atOnce: number
  waitingMax: number
  waitingOfOneMax: number
  /** The error for calls that find the line full. `isOwnLine`: the owner's own calls fill it. */
  createRefusal: (isOwnLine: boolean) => Error
}

/**
 * How many calls run at a time; the others wait, and their owners take turns. No call waits for longer than its signal allows.
 */
export function createCallPool({ atOnce, createRefusal, ...bounds }: Options) {
  const line = createFairLine<Waiting>(bounds)
  let running = 0

  function waitInLine(owner: string, signal: AbortSignal): Promise<void> {
    const full = line.fullFor(owner)
    if (full) throw createRefusal(full === 'own')
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        line.remove(owner, waiting)
        reject(signal.reason as Error)
      }
      const waiting: Waiting = {
        begin() {
          signal.removeEventListener('abort', giveUp)
          resolve()
        },
      }
      line.add(owner, waiting)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  /** Resolves when a call may be made; each must `leave`. */
  async function enter(owner: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (running < atOnce) running++
    else await waitInLine(owner, signal)
  }

  function leave() {
    const next = line.takeNext()
    if (next) next.begin() // takes over the place
    else running--
  }

  return {
    enter,
    leave,
    /** Whether a call may be made now. For second tries: they must not take a turn from those who wait. */
    tryEnter(): boolean {
      if (running >= atOnce || line.size() > 0) return false
      running++
      return true
    },
    isIdle: () => running === 0,
    async run<T>(owner: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      await enter(owner, signal)
      try {
        return await work()
      } finally {
        leave()
      }
    },
  }
}
export type CallPool = ReturnType<typeof createCallPool>
