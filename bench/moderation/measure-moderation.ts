import { modes } from '../chat-call.ts'
import { cpuTableOf } from '../cpu/cpu-table.ts'
import { type CpuBench, measureCpu } from '../cpu/measure-cpu.ts'
import type { Target } from '../targets/target.ts'

type Options = Omit<CpuBench, 'targets'> & {
  bare: Target
  /** With the scripted scorer, which costs next to nothing. */
  gatehouse: Target
  local: Target
  remote: Target
  countScored(): Promise<number>
}

/** What moderation adds to a call. Every request and every answer has a text that was never scored before. */
export async function measureModeration(options: Options) {
  const { bare, gatehouse, local, remote, countScored, plan } = options
  const scripted = { ...gatehouse, name: 'Gatehouse, scripted scorer' }
  const targets = [bare, scripted, local, remote].map((target) => ({ ...target, isFresh: true }))
  const results = await measureCpu({ ...options, targets }, modes)
  for (const [mode, measured] of results) {
    console.log(`\nModeration, ${mode}, ${plan.windows} windows: median (least)`)
    console.log(cpuTableOf(measured))
  }
  const scored = await countScored()
  // At least the request and one window of the answer, for each of the calls that warmed it up.
  const least = 2 * modes.length * plan.warmUpRequests
  if (scored < least) {
    throw new Error(`The remote scorer has scored ${scored} texts instead of ${least} or more.`)
  }
  console.log(`\nThe remote scorer has scored ${scored} texts. Its own CPU time is in no row.`)
}
