import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { readOptions, refuse } from '@gatehouse/tools/help/read-options'
import { useSources } from '@gatehouse/tools/program'
import { type Costs, writeCosts } from '@gatehouse/tools/scale/costs'

import { measureAgainst } from './against/measure-against.ts'
import { findCommit } from './against/working-copy.ts'
import { deferStop } from './defer-stop.ts'
import { profileGatehouse } from './profile/profile.ts'
import { runSections } from './runs/run-sections.ts'
import type { Plan, Run } from './runs/run.ts'
import { type SectionName, sections } from './sections.ts'
import { startOwnServers } from './servers/own-servers.ts'
import { ensureProgram } from './targets/debian-package.ts'
import { startGatehouse } from './targets/gatehouse.ts'
import { startBareProxy, startUpstream } from './targets/start-targets.ts'
import { tracedEnvironment } from './trace/trace-sender.ts'

const full: Plan = {
  windows: 8,
  warmUpRequests: 10_000,
  rateWindows: 8,
  rounds: 3,
  mayRepeat: true,
}
const quick: Plan = {
  windows: 3,
  warmUpRequests: 2000,
  rateWindows: 2,
  rounds: 1,
  mayRepeat: false,
}

const scratch = fileURLToPath(new URL('../.scratch/bench', import.meta.url))

const describeMachine = () =>
  `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`

function chosenFrom(names: readonly string[]): SectionName[] {
  const known = Object.keys(sections) as SectionName[]
  const unknown = names.find((name) => !known.includes(name as SectionName))
  if (unknown !== undefined) refuse('bench', `There is no section '${unknown}'.`)
  return known.filter((name) => names.length === 0 || names.includes(name))
}

async function makeFolder(cleanup: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(scratch, 'run-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function start(plan: Plan, isTraced: boolean, cleanup: AsyncDisposableStack): Promise<Run> {
  // What is traced are modules, which a build does not have any more.
  if (isTraced) useSources()
  const folder = await makeFolder(cleanup)
  const servers = await startOwnServers(cleanup)
  const upstream = await deferStop(await startUpstream(), cleanup)
  const bare = await deferStop(await startBareProxy(upstream.url), cleanup)
  const environment = isTraced ? tracedEnvironment : {}
  const options = { upstream: upstream.url, servers, hasManyStreams: true, environment }
  const gatehouse = await deferStop(await startGatehouse(options), cleanup)
  return {
    plan,
    upstream,
    bare,
    gatehouse,
    servers,
    scratch,
    folder,
    cleanup,
    known: { costs: {} },
    isTraced,
  }
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

/** Refuses options that do not go together: each of these three is a run of its own kind. */
function readArguments() {
  const { values, positionals } = readOptions('bench', {
    options: {
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      trace: { type: 'boolean', default: false },
      against: { type: 'string' },
    },
    allowPositionals: true,
  })
  const kinds = [
    values.profile && '--profile',
    values.trace && '--trace',
    values.against !== undefined && '--against',
  ].filter((kind) => kind !== false)
  if (kinds.length > 1) refuse('bench', `${kinds.join(' and ')} do not go together.`)
  if (kinds.length > 0 && (values.write || positionals.length > 0)) {
    refuse('bench', `${kinds[0]} takes neither sections nor --write.`)
  }
  return { ...values, chosen: values.trace ? (['added'] as const) : chosenFrom(positionals) }
}
type Arguments = ReturnType<typeof readArguments>

async function measureSections(options: Arguments, plan: Plan, cleanup: AsyncDisposableStack) {
  const started = await start(plan, options.trace, cleanup)
  const failed = await runSections(started, options.chosen)
  if (failed.length > 0) process.exitCode = 1
  if (options.trace) console.log('\nTracing costs time: these figures are not to be quoted.')
  if (options.write) await writeCosts(completed(started.known.costs))
}

async function requireCommit(reference: string): Promise<string> {
  return (await findCommit(reference)) ?? refuse('bench', `There is no commit '${reference}'.`)
}

async function run() {
  const options = readArguments()
  const { against } = options
  const commit = against === undefined ? undefined : await requireCommit(against)
  await using cleanup = new AsyncDisposableStack()
  // Stopping the processes makes the current step fail, which ends the run.
  const stopEarly = () => void cleanup.disposeAsync()
  process.once('SIGINT', stopEarly).once('SIGTERM', stopEarly)
  await mkdir(scratch, { recursive: true })
  await ensureProgram('wrk', 'wrk')
  console.log(`Starting; ${describeMachine()}.`)
  const plan = options.quick ? quick : full
  if (options.profile) await profileGatehouse(scratch, plan.warmUpRequests, cleanup)
  else if (commit !== undefined) {
    await measureAgainst({ commit, plan, folder: await makeFolder(cleanup), cleanup })
  } else await measureSections(options, plan, cleanup)
  console.log(`\nMeasured on ${describeMachine()}.`)
  if (options.quick) console.log('A quick run: its figures are not to be quoted.')
}

try {
  await run()
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
