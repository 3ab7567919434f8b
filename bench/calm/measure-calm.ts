import { setTimeout as sleep } from 'node:timers/promises'

import { stopProcess } from '@gatehouse/tools/service-process'

import type { Figures } from '../budget/goals.ts'
import { type Mode, modes } from '../chat-call.ts'
import { sendCalls } from '../counts/send-calls.ts'
import { deferStop } from '../defer-stop.ts'
import { prepareLoad, warmUp } from '../full-load.ts'
import { timesHeading, timesRow } from '../latency/added-time.ts'
import { type Sender, startSender } from '../latency/fixed-rate.ts'
import { measureTimes, quarterOf } from '../latency/measure-times.ts'
import type { WindowTimes } from '../latency/window-times.ts'
import type { Run } from '../runs/run.ts'
import { toTable } from '../table.ts'
import {
  type Block,
  calmFiguresOf,
  findCheck,
  findInvalid,
  findNothingAdded,
} from './calm-figures.ts'
import { type CalmGatehouse, startCalm } from './start-calm.ts'

const connections = 32
const windows = 4
/** A worker checks the ledger 30 s after its start: the busy windows begin shortly before. */
const untilCheckMs = 26_000

type Bench = { run: Run; calm: CalmGatehouse; sender: Sender; mode: Mode; perSecond: number }

/** The added time without background work, and while a worker checks the ledger and another delivers a backlog of events. */
export async function measureCalm(run: Run, capacity: Record<Mode, number>): Promise<Figures> {
  const { bare, cleanup, plan, folder } = run
  const calm = await startCalm(run)
  for (const mode of modes) {
    const load = await prepareLoad(calm.gatehouse, { mode, connections, folder })
    await warmUp(load, plan.warmUpRequests)
  }
  const sender = await deferStop(await startSender(), cleanup)
  const figures: Figures = {}
  const problems: string[] = []
  const rows: string[][] = []
  for (const mode of modes) {
    const perSecond = quarterOf(capacity[mode])
    // Every organization gets something new to check.
    await sendCalls(calm.gatehouse, mode, 2 * calm.gatehouse.keys.length, connections)
    await calm.fallBehind()
    const rate = { sender, mode, perSecond, windows }
    const [ofBare = [], own = []] = await measureTimes([bare, calm.gatehouse], rate)
    const quiet = { bare: ofBare, gatehouse: own }
    const { busy, problem: notBusy } = await measureBusy({ run, calm, sender, mode, perSecond })
    const problem = notBusy ?? findNothingAdded({ quiet, busy })
    for (const [name, block] of Object.entries({ quiet, busy })) {
      rows.push(timesRow(`${mode}, ${name}: bare proxy`, perSecond, block.bare))
      rows.push(timesRow(`${mode}, ${name}: Gatehouse`, perSecond, block.gatehouse))
    }
    if (problem === undefined) Object.assign(figures, calmFiguresOf(mode, { quiet, busy }))
    else problems.push(`${mode}: ${problem}`)
  }
  console.log(`\n${toTable([timesHeading, ...rows])}`)
  if (problems.length > 0) throw new Error(`the windows were not valid; ${problems.join('; ')}.`)
  return figures
}

/** A worker more is started for these windows only, so that its check of the ledger falls into them. */
async function measureBusy({ run, calm, sender, mode, perSecond }: Bench) {
  const { gatehouse, switchSink } = calm
  const worker = await gatehouse.startWorker(`checking-${mode}`)
  try {
    await sleep(untilCheckMs)
    await switchSink(true)
    const startedAt = Date.now()
    const busy = { bare: [] as WindowTimes[], gatehouse: [] as WindowTimes[] }
    const isBehind: boolean[] = []
    while (isBehind.length < windows) {
      // One at a time, to see what the background was doing at the end of each.
      const targets = [run.bare, gatehouse]
      const rate = { sender, mode, perSecond, windows: 1, isWarm: true }
      const [ofBare = [], own = []] = await measureTimes(targets, rate)
      busy.bare.push(...ofBare)
      busy.gatehouse.push(...own)
      isBehind.push(await calm.isBehind())
    }
    const endedAt = Date.now()
    const check = findCheck(await worker.readLog())
    const problem = findInvalid({ startedAt, endedAt, check, isBehind })
    return { busy: busy satisfies Block, problem }
  } finally {
    await switchSink(false)
    await stopProcess(worker.child)
  }
}
