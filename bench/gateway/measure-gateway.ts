import { modes } from '../chat-call.ts'
import { cpuTableOf } from '../cpu/cpu-table.ts'
import { type CpuBench, measureCpu } from '../cpu/measure-cpu.ts'
import { printFirstToken } from '../latency/first-token.ts'
import type { Sender } from '../latency/fixed-rate.ts'
import type { Target } from '../targets/target.ts'

type Options = Omit<CpuBench, 'targets'> & {
  bare: Target
  without: Target
  configured: Target
  sender: Sender
}

/** What a configuration of the policy gateway adds to a call: one process serves both organizations in turn. */
export async function measureGateway(options: Options) {
  const { bare, without, configured, plan } = options
  const targets = [bare, without, configured]
  const results = await measureCpu({ ...options, targets }, modes)
  for (const [mode, measured] of results) {
    console.log(`\nPolicy gateway, ${mode}, ${plan.windows} windows: median (least)`)
    console.log(cpuTableOf(measured))
  }
  await printFirstToken(targets, results.get('stream')?.at(-1), options)
}
