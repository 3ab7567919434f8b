import { setImmediate } from 'node:timers/promises'

/** Runs work and returns the longest time for which it held the event loop: time of this thread on a processor. */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let longestMs = 0
  let isDone = false
  const watch = async () => {
    while (!isDone) {
      const before = process.threadCpuUsage()
      await setImmediate()
      const { user, system } = process.threadCpuUsage(before)
      longestMs = Math.max(longestMs, (user + system) / 1000)
    }
  }
  await Promise.all([watch(), work().finally(() => (isDone = true))])
  return longestMs
}
