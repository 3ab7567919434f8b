import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Mode, modes } from '../chat-call.ts'
import { median } from '../cpu/cpu-table.ts'
import { deferStop } from '../defer-stop.ts'
import { startOwnServers } from '../servers/own-servers.ts'
import { type Gatehouse, startGatehouse } from '../targets/gatehouse.ts'
import { startBareProxy, startUpstream } from '../targets/start-targets.ts'
import { watchCommands } from './commands.ts'
import { measureCpuRatios } from './cpu-ratio.ts'
import type { Counted } from './hook.ts'
import { sendCalls } from './send-calls.ts'
import { watchStatements } from './statements.ts'

/** Per call. What the process does without calls has been subtracted. */
export type Counts = {
  statements: number
  commits: number
  commands: number
  socketWrites: number
  blockingLogWrites: number
  logWrites: number
  promises: number
  heapBytes: number
}
export type Load = 'one' | 'many'
export type Measured = {
  counts: Record<Mode, Record<Load, Counts>>
  /** The statements and commands behind the counts, for a reader who looks for one too many. */
  details: string[]
  /** CPU time of a call as a multiple of the bare proxy's, many at once. */
  cpu: Record<Mode, number>
}

/** Enough for the load; one at a time so few that looking their keys up again after a minute does not count. */
const organizations = 40
const keysUsed = { one: 4, many: organizations } as const
/** The median of several batches is reported: what a process does now and then by itself is in one of them only. */
const batches = 5
const callsInBatch = { one: 60, many: 400 } as const
const atOnce = { one: 1, many: 64 } as const
const idleMs = 3000
/** After the last answer, slots are released and events written. */
const settlingMs = 300

type Raw = Counted & {
  statements: ReadonlyMap<string, number>
  commands: ReadonlyMap<string, number>
  commits: number
  ms: number
}
type Watch = {
  gatehouse: Gatehouse
  statements: Awaited<ReturnType<typeof watchStatements>>
  commands: Awaited<ReturnType<typeof watchCommands>>
}

/** Starts a Gatehouse of its own and counts what one call makes it do, one at a time and many at once. */
export async function measureCounts(
  cleanup: AsyncDisposableStack,
  cpuLimits: Record<Mode, number>,
): Promise<Measured> {
  const servers = await startOwnServers(cleanup, { isCounting: true })
  const upstream = await deferStop(await startUpstream(), cleanup)
  const hook = new URL('hook.ts', import.meta.url).href
  const environment = { NODE_OPTIONS: `--import=${hook}` }
  const gatehouse = await deferStop(
    await startGatehouse({ upstream: upstream.url, servers, environment, organizations }),
    cleanup,
  )
  const watch: Watch = {
    gatehouse,
    statements: await watchStatements(servers.postgres, gatehouse.database.name),
    commands: await deferStop(await watchCommands(servers.redis.port), cleanup),
  }
  // The worker's statements would be counted too.
  await gatehouse.stopWorker()
  for (const mode of modes) await sendCalls(gatehouse, mode, 10 * organizations, atOnce.many)
  const idle = await countDuring(watch, 'start', () => sleep(idleMs))
  const details: string[] = []
  const counts = { plain: {}, stream: {} } as Measured['counts']
  for (const load of ['one', 'many'] as const) {
    for (const mode of modes) {
      const target = { ...gatehouse, keys: gatehouse.keys.slice(0, keysUsed[load]) }
      const count = callsInBatch[load]
      const send = () => sendCalls(target, mode, count, atOnce[load])
      const { promises } = await countDuring(watch, 'start promises', send)
      const measured: Raw[] = []
      while (measured.length < batches) measured.push(await countDuring(watch, 'start', send))
      counts[mode][load] = mediansOf(
        measured.map((busy) => perCall({ ...busy, promises }, idle, count)),
      )
      if (load === 'one') details.push(...describe(mode, measured, count))
    }
  }
  const bare = await deferStop(await startBareProxy(upstream.url), cleanup)
  const cpu = await measureCpuRatios({ bare, gatehouse, limits: cpuLimits })
  const caveat = await gatehouse.caveat()
  if (caveat) throw new Error(caveat)
  return { counts, details, cpu }
}

async function countDuring(
  { gatehouse, statements, commands }: Watch,
  message: 'start' | 'start promises',
  work: () => Promise<unknown>,
): Promise<Raw> {
  const [child] = gatehouse.children
  if (!child) throw new Error('There is no process to count in.')
  await statements.start()
  commands.take()
  const startedAt = performance.now()
  child.send(message)
  await work()
  await sleep(settlingMs)
  const counted = await askFor(child)
  const executed = await statements.read()
  const ms = performance.now() - startedAt
  return { ...counted, ...executed, commands: commands.take(), ms }
}

const askFor = (child: ChildProcess) =>
  new Promise<Counted>((resolve) => {
    child.once('message', (counted) => resolve(counted as Counted))
    child.send('stop')
  })

const sumOf = (counts: ReadonlyMap<string, number>) =>
  [...counts.values()].reduce((sum, count) => sum + count, 0)

function perCall(busy: Raw, idle: Raw, count: number): Counts {
  const share = busy.ms / idle.ms
  const of = (read: (raw: Raw) => number) => Math.max(0, read(busy) - read(idle) * share) / count
  return {
    statements: of((raw) => sumOf(raw.statements)),
    commits: of((raw) => raw.commits),
    commands: of((raw) => sumOf(raw.commands)),
    socketWrites: of((raw) => raw.socketWrites),
    blockingLogWrites: of((raw) => raw.blockingLogWrites),
    logWrites: of((raw) => raw.logWrites),
    promises: busy.promises / count,
    heapBytes: of((raw) => raw.heapBytes),
  }
}

function mediansOf(measured: readonly Counts[]): Counts {
  const [first] = measured
  if (!first) throw new Error('Nothing was counted.')
  const names = Object.keys(first) as (keyof Counts)[]
  const medians = names.map((name) => [name, median(measured.map((one) => one[name]))] as const)
  return Object.fromEntries(medians) as Counts
}

/** Whatever happened for every fiftieth call or more often, over all batches. */
function describe(mode: Mode, measured: readonly Raw[], count: number): string[] {
  const totals = new Map<string, number>()
  for (const { statements, commands } of measured) {
    for (const [name, times] of [...statements, ...commands]) {
      totals.set(name, (totals.get(name) ?? 0) + times)
    }
  }
  const calls = count * measured.length
  return [...totals]
    .filter(([, times]) => times >= calls / 50)
    .toSorted((left, right) => right[1] - left[1])
    .map(([name, times]) => `${mode}: ${(times / calls).toFixed(2)} × ${name}`)
}
