import { EgressFailed } from './egress-failed.ts'

export type Slots = {
  /** Waits for a slot, in the order of arrival, until the signal aborts. */
  enter(signal: AbortSignal): Promise<void>
  leave(): void
}

export function createSlots(slotsMax: number, waitingMax: number): Slots {
  const waiting = new Set<() => void>()
  let taken = 0

  function waitForSlot(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enterNow = () => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        waiting.delete(enterNow)
        reject(signal.reason as Error)
      }
      waiting.add(enterNow)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  return {
    async enter(signal) {
      signal.throwIfAborted()
      if (taken < slotsMax) {
        taken += 1
        return
      }
      if (waiting.size >= waitingMax) {
        throw new EgressFailed('Too many calls wait for a connection.')
      }
      await waitForSlot(signal)
    },
    leave() {
      const [next] = waiting
      if (!next) {
        taken -= 1
        return
      }
      waiting.delete(next)
      next() // takes over the slot
    },
  }
}
