import { setTimeout as sleep } from 'node:timers/promises'

import type { Figures } from '../budget/goals.ts'
import { memoryMegabytes } from '../process-usage.ts'
import { toTable } from '../table.ts'
import type { Target } from '../targets/target.ts'
import type { StreamSender } from './start-stream-sender.ts'

const idleStreams = 5000
const settlingMs = 5000
const stallMs = 300_000

type Idle = { figures: Figures; kilobytesPerStream: number; restMegabytes: number }

/**
 * The memory that streams take which have sent one frame and are silent since. They are opened at half the rate that
 * the process can serve, because they would be refused as an overload otherwise.
 */
export async function measureIdle(
  gatehouse: Target,
  sender: StreamSender,
  capacity: number,
): Promise<Idle> {
  const openingMs = (idleStreams / (capacity / 2)) * 1000
  const rest = await memoryMegabytes(gatehouse.pids)
  const script = { tokens: 10, stallAfter: { pieces: 1, ms: stallMs } }
  await sender.begin(gatehouse, { streams: idleStreams, openingMs, script, tokensMax: 64 })
  await sleep(settlingMs)
  const open = await memoryMegabytes(gatehouse.pids)
  const { started, ended } = await sender.report()
  if (started - ended !== idleStreams) {
    throw new Error(`Only ${started - ended} of ${idleStreams} streams stayed open.`)
  }
  sender.end()
  const above = open - rest
  const kilobytesPerStream = (above * 1024) / idleStreams
  console.log(
    `\n${toTable([
      ['idle streams', 'at rest MB', 'open MB', 'KB per stream'],
      [String(idleStreams), rest.toFixed(0), open.toFixed(0), kilobytesPerStream.toFixed(1)],
    ])}`,
  )
  return { figures: { idleStreams: { value: above } }, kilobytesPerStream, restMegabytes: rest }
}
