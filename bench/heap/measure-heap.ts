import { modes } from '../chat-call.ts'
import { cpuTableOf } from '../cpu/cpu-table.ts'
import { measureCpu } from '../cpu/measure-cpu.ts'
import { deferStop } from '../defer-stop.ts'
import type { Run } from '../runs/run.ts'
import { measurePaced } from '../streams/paced.ts'
import { startStreamSender } from '../streams/start-stream-sender.ts'
import { startGatehouse } from '../targets/gatehouse.ts'

/** How large each half of the space for new objects may become. */
const sizesMb = [16, 32, 64]

/** What a larger space for new objects saves in CPU time, and what it takes in memory, at full load and with paced streams. */
export async function measureHeap(run: Run) {
  const { upstream, servers, bare, cleanup, plan } = run
  const gatehouses = []
  for (const size of sizesMb) {
    const environment = { NODE_OPTIONS: `--max-semi-space-size=${size}` }
    const options = { upstream: upstream.url, servers, environment, hasManyStreams: true }
    const gatehouse = await deferStop(await startGatehouse(options), cleanup)
    gatehouses.push({ ...gatehouse, name: `${size} MB` })
  }
  const targets = [bare, ...gatehouses]
  for (const [mode, measured] of await measureCpu({ ...run, targets }, modes)) {
    console.log(`\n${mode}, ${plan.windows} windows: median (least)\n${cpuTableOf(measured)}`)
  }
  const sender = await deferStop(await startStreamSender(), cleanup)
  await measurePaced({ targets, upstream, sender, rounds: plan.rounds })
  return gatehouses
}
