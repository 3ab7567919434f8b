import { setTimeout as sleep } from 'node:timers/promises'

/** Repeats `work`, which must not throw and returns how long to wait until the next time, until `signal` aborts. */
export async function repeat(signal: AbortSignal, work: () => Promise<number>) {
  while (!signal.aborted) {
    const waitMs = await work()
    await sleep(waitMs, undefined, { signal }).catch(() => undefined)
  }
}
