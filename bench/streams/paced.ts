import { setTimeout as sleep } from 'node:timers/promises'

import type { Figures } from '../budget/goals.ts'
import { median } from '../cpu/cpu-table.ts'
import { percentile } from '../latency/fixed-rate.ts'
import { createCpuMeter } from '../process-usage.ts'
import { toTable } from '../table.ts'
import type { Target } from '../targets/target.ts'
import type { StreamSender } from './start-stream-sender.ts'

// Streams as models send them: one frame in each chunk, some time apart, many streams at once. What a caller sees of that pace
// is part of the result: frames that wait for their verdict leave together.

const streams = 200
const frames = 300
const paceMs = 20
const openingMs = 1000
/** Words that no stream had before: what was scored once is not asked about again. */
const freshText = Array.from({ length: frames }, (_, index) => `w@number@x${index}`).join(' ')
/** All streams are open during the window, and none of them ends in it. */
const windowMs = frames * paceMs - openingMs - 1200

type Options = {
  /** The bare proxy, Gatehouse, and Gatehouse with a scorer that takes its time. */
  targets: readonly Target[]
  upstream: Target
  sender: StreamSender
  rounds: number
}
/** `perFrame`: CPU time in microseconds, of each target in turn; `bare`: that of the first in each round. */
type Paced = { figures: Figures; perFrame: number[]; bare: number[] }
type Round = {
  perFrame: number
  upstreamPerFrame: number
  perSecond: number
  perRelease: number
  mostFrames: number
  longestGapMs: number
  firstTextP50: number
  firstTextP99: number
}

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
  const rows = targets.map(({ name }, index) => rowOf(name, measured[index] ?? []))
  console.log(`\n${toTable([heading, ...rows])}`)
  const costs = measured.map((one) => one.map((round) => round.perFrame))
  const least = costs.map((values) => Math.min(...values))
  const perFrame = costs.map(median)
  const above = ([bare = NaN, gatehouse = NaN]: readonly number[]) => gatehouse - bare
  const figures = {
    frame: { value: above(least), median: above(perFrame) },
    ...releaseFiguresOf(measured),
  }
  return { figures, perFrame, bare: costs[0] ?? [] }
}

/** How the frames of each target leave, and how much later than the bare proxy's the first text comes. */
function releaseFiguresOf([bare = [], own = [], remote = []]: readonly Round[][]): Figures {
  const usual = (rounds: readonly Round[], part: keyof Round) =>
    median(rounds.map((round) => round[part]))
  const firstText = (rounds: readonly Round[]) => ({
    value: usual(rounds, 'firstTextP99') - usual(bare, 'firstTextP99'),
    median: usual(rounds, 'firstTextP50') - usual(bare, 'firstTextP50'),
  })
  return {
    pacedFrames: { value: usual(own, 'perRelease') },
    pacedFramesMost: { value: usual(own, 'mostFrames') },
    pacedFirstText: firstText(own),
    remoteFrames: { value: usual(remote, 'perRelease') },
    remoteFirstText: firstText(remote),
  }
}

const heading = [
  'paced streams',
  'frames/s',
  'CPU µs per frame',
  'upstream µs',
  'frames per release',
  'most',
  'longest gap ms',
  'first text p50 ms',
  'p99 ms',
]

function rowOf(name: string, rounds: readonly Round[]): string[] {
  const valuesOf = (part: keyof Round) => rounds.map((round) => round[part])
  const usual = (part: keyof Round) => median(valuesOf(part)).toFixed(1)
  const most = (part: keyof Round) => Math.max(...valuesOf(part)).toFixed(0)
  return [
    name,
    median(valuesOf('perSecond')).toFixed(0),
    `${usual('perFrame')} (${Math.min(...valuesOf('perFrame')).toFixed(1)})`,
    usual('upstreamPerFrame'),
    usual('perRelease'),
    most('mostFrames'),
    most('longestGapMs'),
    usual('firstTextP50'),
    usual('firstTextP99'),
  ]
}

async function measureRound(target: Target, { upstream, sender }: Options): Promise<Round> {
  const [cpu, upstreamCpu] = [createCpuMeter(target.pids), createCpuMeter(upstream.pids)]
  const script = { ...(target.isFresh ? { text: freshText } : { tokens: frames }), paceMs }
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
  const releases = await sender.releases()
  const received = after.frames - before.frames
  const seconds = (after.at - before.at) / 1000
  const due = (streams * 1000) / paceMs
  // Frames that wait for a verdict leave together, which the table shows. Too few frames are another matter.
  if (after.ended > 0 || received / seconds < due * 0.7) {
    const rate = `${(received / seconds).toFixed(0)} of ${due} frames per second`
    throw new Error(`${target.name}: ${rate} arrived; the machine is too busy.`)
  }
  return {
    perFrame: (after.cpu - before.cpu) / received,
    upstreamPerFrame: (after.upstreamCpu - before.upstreamCpu) / received,
    perSecond: received / seconds,
    perRelease: releases.frames / releases.releases,
    mostFrames: releases.mostFrames,
    longestGapMs: releases.longestGapMs,
    firstTextP50: percentile(releases.firstTextMs, 0.5),
    firstTextP99: percentile(releases.firstTextMs, 0.99),
  }
}
