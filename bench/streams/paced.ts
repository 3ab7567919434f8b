import { setTimeout as sleep } from 'node:timers/promises'

import type { Figures } from '../budget/goals.ts'
import { median } from '../cpu/cpu-table.ts'
import { createCpuMeter } from '../process-usage.ts'
import { toTable } from '../table.ts'
import type { Target } from '../targets/target.ts'
import type { StreamSender } from './start-stream-sender.ts'

// Streams as models send them: one frame in each chunk, some time apart, many streams at once.

const streams = 200
const frames = 300
const paceMs = 20
const openingMs = 1000
/** All streams are open during the window, and none of them ends in it. */
const windowMs = frames * paceMs - openingMs - 1200

type Options = {
  targets: readonly Target[]
  upstream: Target
  sender: StreamSender
  rounds: number
}
/** `perFrame`: CPU time in microseconds, of each target in turn. */
type Paced = { figures: Figures; perFrame: number[] }
type Round = { perFrame: number; upstreamPerFrame: number; perSecond: number; perChunk: number }

/** CPU time per frame of each target. The first round of each warms it up. */
export async function measurePaced(options: Options): Promise<Paced> {
  const { targets, rounds } = options
  const measured = targets.map((): Round[] => [])
  for (let round = 0; round <= rounds; round++) {
    for (const [index, target] of targets.entries()) {
      const result = await measureRound(target, options)
      if (round > 0) measured[index]?.push(result)
    }
  }
  const rows = [
    ['paced streams', 'frames/s', 'CPU µs per frame', 'upstream µs', 'frames per chunk'],
  ]
  const perFrame = measured.map((one) => median(one.map((round) => round.perFrame)))
  for (const [index, target] of targets.entries()) {
    const of = (part: keyof Round) => median(measured[index]?.map((one) => one[part]) ?? [])
    const figures = [of('perFrame'), of('upstreamPerFrame'), of('perChunk')]
    rows.push([target.name, of('perSecond').toFixed(0), ...figures.map((one) => one.toFixed(1))])
  }
  console.log(`\n${toTable(rows)}`)
  const [bare = NaN, gatehouse = NaN] = perFrame
  return { figures: { frame: { value: gatehouse - bare } }, perFrame }
}

async function measureRound(target: Target, { upstream, sender }: Options): Promise<Round> {
  const [cpu, upstreamCpu] = [createCpuMeter(target.pids), createCpuMeter(upstream.pids)]
  const script = { tokens: frames, paceMs }
  await sender.begin(target, { streams, openingMs, script, tokensMax: frames })
  const read = async () => ({
    ...(await sender.report()),
    cpu: await cpu(),
    upstreamCpu: await upstreamCpu(),
    at: performance.now(),
  })
  const before = await read()
  await sleep(windowMs)
  const after = await read()
  await sender.untilEnded(streams)
  const received = after.frames - before.frames
  const seconds = (after.at - before.at) / 1000
  const perChunk = received / (after.chunks - before.chunks)
  const due = (streams * 1000) / paceMs
  if (after.ended > 0 || received / seconds < due * 0.7 || perChunk > 1.3) {
    const rate = `${(received / seconds).toFixed(0)} of ${due} frames per second`
    const joined = `${perChunk.toFixed(2)} in a chunk`
    throw new Error(`${target.name}: ${rate} arrived, ${joined}; the machine is too busy.`)
  }
  return {
    perFrame: (after.cpu - before.cpu) / received,
    upstreamPerFrame: (after.upstreamCpu - before.upstreamCpu) / received,
    perSecond: received / seconds,
    perChunk,
  }
}
