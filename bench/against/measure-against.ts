import { repositoryRoot } from '@gatehouse/tools/source-files'

import { type Mode, modes } from '../chat-call.ts'
import { bareCostsOf, cpuTableOf, median } from '../cpu/cpu-table.ts'
import { type CpuPlan, measureCpu, type Result } from '../cpu/measure-cpu.ts'
import { deferStop } from '../defer-stop.ts'
import { timesHeading, timesRow } from '../latency/added-time.ts'
import { startSender } from '../latency/fixed-rate.ts'
import { measureTimes, quarterOf } from '../latency/measure-times.ts'
import { describeNoise, spreadOf } from '../runs/noise.ts'
import { watchMachine } from '../runs/watch-machine.ts'
import { startOwnServers } from '../servers/own-servers.ts'
import { toTable } from '../table.ts'
import { startBareProxy, startUpstream } from '../targets/start-targets.ts'
import { againstTableOf, type Compared } from './against-table.ts'
import { startVariant } from './start-variant.ts'
import { checkOut } from './working-copy.ts'

type Options = {
  commit: string
  plan: CpuPlan & { rateWindows: number }
  folder: string
  cleanup: AsyncDisposableStack
}

/** Compares an earlier commit with this working copy: in one run, on the same servers, in turns. */
export async function measureAgainst({ commit, plan, folder, cleanup }: Options) {
  const root = await checkOut(commit, cleanup)
  const servers = await startOwnServers(cleanup)
  const upstream = await deferStop(await startUpstream(), cleanup)
  const bare = await deferStop(await startBareProxy(upstream.url), cleanup)
  const shared = { upstream, servers, cleanup }
  const before = await startVariant({ name: `Gatehouse ${commit}`, root }, shared)
  const now = await startVariant({ name: 'Gatehouse now', root: repositoryRoot }, shared)
  const targets = [bare, before, now]
  const readOthers = await watchMachine()
  const results = await measureCpu({ plan, upstream, targets, servers, folder }, modes)
  const sender = await deferStop(await startSender(), cleanup)
  const compared = {} as Record<Mode, Compared>
  const rows: string[][] = []
  for (const mode of modes) {
    const measured = results.get(mode) ?? []
    console.log(`\n${mode}, ${plan.windows} windows: median (least)\n${cpuTableOf(measured)}`)
    const perSecond = quarterOf(Math.min(...measured.slice(1).map(rateOf)))
    const rate = { sender, mode, perSecond, windows: plan.rateWindows }
    const times = await measureTimes(targets, rate)
    rows.push(
      ...targets.map(({ name }, index) =>
        timesRow(`${mode}: ${name}`, perSecond, times[index] ?? []),
      ),
    )
    compared[mode] = toCompared(measured, times)
  }
  console.log(`\n${toTable([timesHeading, ...rows])}`)
  for (const { name, caveat } of [before, now]) {
    const found = await caveat?.()
    if (found !== undefined) console.log(`\n${name}: ${found}`)
  }
  const bareSpread = spreadOf([...results.values()].map(bareCostsOf))
  console.log(`\n${againstTableOf(commit, compared)}`)
  console.log(`\nNoise: ${describeNoise({ othersShare: await readOthers(), bareSpread })}.`)
}

const rateOf = ({ windows }: Result) => median(windows.map(({ perSecond }) => perSecond))

function toCompared(
  results: readonly Result[],
  times: Awaited<ReturnType<typeof measureTimes>>,
): Compared {
  const of = (index: number) => {
    const cpu = results[index]
    if (!cpu) throw new Error('Not every target was measured.')
    return { cpu, times: times[index] ?? [] }
  }
  return { bare: of(0), before: of(1), now: of(2) }
}
