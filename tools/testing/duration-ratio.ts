type Comparison = {
  work: () => unknown
  /** Something plain that a slow machine slows down as much. */
  baseline: () => unknown
  limit: number
}

const roundsMax = 5

/**
 * How many times as long `work` keeps this thread busy as `baseline` does, both measured in turns. Caches, collections
 * and neighbours can spoil a round, but not every one: the lowest ratio counts, and the first below `limit` is enough.
 */
export async function durationRatio(name: string, { work, baseline, limit }: Comparison) {
  let lowest = Infinity
  for (let round = 0; round < roundsMax && lowest >= limit; round++) {
    const baselineMs = await busyMs(baseline)
    const workMs = await busyMs(work)
    lowest = Math.min(lowest, workMs / baselineMs)
    print(name, workMs, baselineMs)
  }
  return lowest
}

/** Time of this thread alone: what other processes and threads do does not count. */
async function busyMs(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** How many times as long `work` takes as a bare timer of `timerMs` that is set at the same moment. */
export async function waitingRatio(name: string, timerMs: number, work: () => Promise<unknown>) {
  const startedAt = performance.now()
  const passedMs = () => performance.now() - startedAt
  let bareMs = timerMs
  const timer = setTimeout(() => (bareMs = passedMs()), timerMs)
  await work()
  const workMs = passedMs()
  clearTimeout(timer)
  print(name, workMs, bareMs)
  return workMs / bareMs
}

function print(name: string, workMs: number, baselineMs: number) {
  const ratio = (workMs / baselineMs).toFixed(2)
  console.log(`${name}: ${workMs.toFixed(1)} ms, ${ratio} times ${baselineMs.toFixed(1)} ms`)
}
