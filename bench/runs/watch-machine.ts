import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'

import { treeSeconds } from '../process-usage.ts'
import { busySecondsIn } from './busy-seconds.ts'

/** From now on: the share of all cores that was taken by processes which this one has not started. */
export async function watchMachine(): Promise<() => Promise<number>> {
  const before = await read()
  return async () => {
    const after = await read()
    const others = after.busy - before.busy - (after.own - before.own)
    const passed = (after.at - before.at) / 1000
    return Math.max(0, others / (passed * availableParallelism()))
  }
}

const read = async () => ({
  at: performance.now(),
  busy: busySecondsIn(await readFile('/proc/stat', 'utf8')),
  own: await treeSeconds([process.pid]),
})
