import { mkdir } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { type Mode, modes } from './chat-call.ts'
import { deferStop } from './defer-stop.ts'
import { startSender } from './fixed-rate.ts'
import { type Bench, measureWindow, type Plan, warmUp } from './measure.ts'
import { profileGatehouse } from './profile.ts'
import { type Result, tableOf, verdictsOf } from './results.ts'
import { ensureProgram } from './targets/debian-package.ts'
import { startTargets, startUpstream } from './targets/start-targets.ts'
import type { Target } from './targets/target.ts'

const usage = `Usage: ./dev bench [--quick] [--profile]
       ./dev bench administration
       ./dev bench overload
       ./dev bench memory

Measures chat completions through Gatehouse and other proxies in front of one scripted upstream.
  --quick    one short window instead of three: about 90 seconds instead of 6 minutes
  --profile  only Gatehouse, under full load: shows where its main thread spends its time
`

const rates = { connections: 32, perSecond: { plain: 200, stream: 100 } }
const full: Plan = { windows: 3, warmUpSeconds: 3, loadSeconds: 4, rateSeconds: 5, ...rates }
const quick: Plan = { windows: 1, warmUpSeconds: 2, loadSeconds: 3, rateSeconds: 3, ...rates }
const titles = { plain: 'Plain answers', stream: 'Streamed answers' } as const

const scratch = fileURLToPath(new URL('../.scratch/bench', import.meta.url))

/** Targets take turns within a window, so that a disturbance of the machine affects all of them. */
async function measureAll(targets: readonly Target[], mode: Mode, bench: Bench): Promise<Result[]> {
  const results = targets.map(({ name }): Result => ({ name, windows: [] }))
  for (let number = 1; number <= bench.plan.windows; number++) {
    for (const [index, target] of targets.entries()) {
      const window = await measureWindow(target, mode, bench)
      results[index]?.windows.push(window)
      const { perSecond, cpuMicroseconds, times } = window
      const figures = `${perSecond.toFixed(0)}/s, ${cpuMicroseconds.toFixed(0)} µs, p50 ${times.p50.toFixed(2)} ms`
      console.log(`${titles[mode]}: window ${number}, ${target.name}: ${figures}`)
    }
  }
  return results
}

function print(mode: Mode, results: readonly Result[], { connections, perSecond }: Plan) {
  console.log(`\n${titles[mode]}: full load over ${connections} connections; latency at`)
  console.log(`${perSecond[mode]} requests/s, added to that of the upstream (in brackets).\n`)
  console.log(tableOf(results))
  console.log(`\n${verdictsOf(results).join('\n')}`)
}

async function printCaveat({ caveat }: Target) {
  const found = await caveat?.()
  if (found) console.log(`\n${found}`)
}

const describeMachine = () =>
  `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`

async function run() {
  const { values: options } = parseArgs({
    options: {
      quick: { type: 'boolean' },
      profile: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  })
  if (options.help) return void process.stdout.write(usage)
  await using cleanup = new AsyncDisposableStack()
  // Stopping the processes makes the current step fail, which ends the run.
  const stopEarly = () => void cleanup.disposeAsync()
  process.once('SIGINT', stopEarly).once('SIGTERM', stopEarly)
  await mkdir(scratch, { recursive: true })
  await ensureProgram('wrk', 'wrk')
  console.log(`Starting; ${describeMachine()}.`)
  const upstream = await deferStop(await startUpstream(), cleanup)
  if (options.profile) return await profileGatehouse(upstream, scratch, cleanup)
  const targets = await startTargets(upstream, scratch, cleanup)
  const sender = await deferStop(await startSender(), cleanup)
  const bench = { plan: options.quick ? quick : full, upstream, sender, scratch }
  // Both modes are warmed up before either is measured, or the first would run with colder code.
  for (const target of targets) {
    console.log(`Warming up: ${target.name}`)
    for (const mode of modes) await warmUp(target, mode, bench)
  }
  const measured: [Mode, Result[]][] = []
  for (const mode of modes) measured.push([mode, await measureAll(targets, mode, bench)])
  for (const [mode, results] of measured) print(mode, results, bench.plan)
  for (const target of targets) await printCaveat(target)
  console.log(`\nMeasured on ${describeMachine()}.`)
  return undefined
}

try {
  await run()
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
