import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { readOptions, refuse } from '@gatehouse/tools/help/read-options'
import { type Costs, writeCosts } from '@gatehouse/tools/scale/costs'

import { budgetTableOf } from './budget/budget-table.ts'
import type { Figures } from './budget/goals.ts'
import { deferStop } from './defer-stop.ts'
import { profileGatehouse } from './profile/profile.ts'
import { type Plan, refuseCaveat, type Run, type SectionName, sections } from './sections.ts'
import { startOwnServers } from './servers/own-servers.ts'
import { ensureProgram } from './targets/debian-package.ts'
import { startGatehouse } from './targets/gatehouse.ts'
import { startBareProxy, startUpstream } from './targets/start-targets.ts'

const full: Plan = { windows: 8, warmUpRequests: 10_000, rateWindows: 4, rounds: 3 }
const quick: Plan = { windows: 3, warmUpRequests: 2000, rateWindows: 2, rounds: 1 }

const scratch = fileURLToPath(new URL('../.scratch/bench', import.meta.url))

const describeMachine = () =>
  `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`

function chosenFrom(names: readonly string[]): SectionName[] {
  const known = Object.keys(sections) as SectionName[]
  const unknown = names.find((name) => !known.includes(name as SectionName))
  if (unknown !== undefined) refuse('bench', `There is no section '${unknown}'.`)
  return known.filter((name) => names.length === 0 || names.includes(name))
}

async function start(plan: Plan, cleanup: AsyncDisposableStack): Promise<Run> {
  const folder = await mkdtemp(join(scratch, 'run-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const servers = await startOwnServers(cleanup)
  const upstream = await deferStop(await startUpstream(), cleanup)
  const bare = await deferStop(await startBareProxy(upstream.url), cleanup)
  const options = { upstream: upstream.url, servers, hasManyStreams: true }
  const gatehouse = await deferStop(await startGatehouse(options), cleanup)
  return { plan, upstream, bare, gatehouse, servers, scratch, folder, cleanup, costs: {} }
}

/** Prints the budget also when a section fails: what was measured before it stays true. */
async function measure(run: Run, chosen: readonly SectionName[]) {
  const figures: Figures = {}
  try {
    for (const name of chosen) {
      Object.assign(figures, await sections[name](run))
      await refuseCaveat(run.gatehouse)
    }
  } finally {
    if (Object.keys(figures).length > 0) console.log(`\n${budgetTableOf(figures)}`)
  }
  return run.costs
}

function completed(costs: Partial<Costs>): Costs {
  const { plain, stream, microsecondsPerFrame, kilobytesPerStream, megabytesPerProcess } = costs
  if (!plain || !stream || !microsecondsPerFrame || !kilobytesPerStream || !megabytesPerProcess) {
    throw new Error('--write needs the sections cpu, paced and idle.')
  }
  return {
    measuredOn: new Date().toISOString().slice(0, 10),
    machine: `${availableParallelism()} shared cores, ${cpus()[0]?.model ?? 'unknown'}`,
    plain,
    stream,
    microsecondsPerFrame,
    kilobytesPerStream,
    megabytesPerProcess,
  }
}

async function run() {
  const { values: options, positionals } = readOptions('bench', {
    options: {
      quick: { type: 'boolean' },
      profile: { type: 'boolean' },
      write: { type: 'boolean' },
    },
    allowPositionals: true,
  })
  if (options.profile && (options.write || positionals.length > 0)) {
    refuse('bench', '--profile takes neither sections nor --write.')
  }
  const chosen = chosenFrom(positionals)
  await using cleanup = new AsyncDisposableStack()
  // Stopping the processes makes the current step fail, which ends the run.
  const stopEarly = () => void cleanup.disposeAsync()
  process.once('SIGINT', stopEarly).once('SIGTERM', stopEarly)
  await mkdir(scratch, { recursive: true })
  await ensureProgram('wrk', 'wrk')
  console.log(`Starting; ${describeMachine()}.`)
  const plan = options.quick ? quick : full
  if (options.profile) await profileGatehouse(scratch, plan.warmUpRequests, cleanup)
  else {
    const costs = await measure(await start(plan, cleanup), chosen)
    if (options.write) await writeCosts(completed(costs))
  }
  console.log(`\nMeasured on ${describeMachine()}.`)
  if (options.quick) console.log('A quick run: its figures are not to be quoted.')
}

try {
  await run()
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
