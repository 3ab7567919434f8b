import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

import { readOptions, refuse } from '@gatehouse/tools/help/read-options'

import { budgetTableOf } from './budget/budget-table.ts'
import { bodyOf, path } from './chat-call.ts'
import { deferStop } from './defer-stop.ts'
import { headerSets } from './header-sets.ts'
import {
  type LoadFigures,
  loadFiguresOf,
  overloadFiguresOf,
  type OverloadRun,
} from './overload/load-figures.ts'
import type { Ended, Job } from './overload/sender.ts'
import { pin } from './process-usage.ts'
import { watchMachine } from './runs/watch-machine.ts'
import { startChild } from './targets/child.ts'
import { type Gatehouse, startGatehouse } from './targets/gatehouse.ts'
import { startUpstream } from './targets/start-targets.ts'
import type { Target } from './targets/target.ts'

// How one process behaves when it gets two and three times the calls that it can serve. The process has a core to
// itself; the sender and the upstream share the other.

const connections = 64
const recoveryMaxMs = 10_000
const capacitySeconds = 10
const restMs = 3000

async function startSender() {
  const { child, pid, stop } = await startChild(new URL('overload/sender.ts', import.meta.url))
  const send = (job: Job) =>
    new Promise<Ended[]>((resolve) => {
      child.once('message', (ended) => resolve(ended as Ended[]))
      child.send(job)
    })
  return { send, pid, stop }
}
type Sender = Awaited<ReturnType<typeof startSender>>

/** The time until a call is served again. */
async function measureRecovery({ url }: Target, headers: Record<string, string>) {
  const startedAt = performance.now()
  for (;;) {
    const answer = await fetch(url + path, { method: 'POST', headers, body: bodyOf('plain') })
    await answer.text()
    const passed = performance.now() - startedAt
    if (answer.status === 200 || passed > recoveryMaxMs) return passed
  }
}

const columns = ['sent', 'served', 'p50 ms', 'p99 ms', 'refused p99', 'other', 'recovery ms']
const printRow = (name: string, cells: readonly string[]) =>
  console.log(name.padEnd(16) + cells.map((cell) => cell.padStart(12)).join(''))

function printLoad(name: string, load: LoadFigures, recoveryMs: number | null) {
  const times = [load.p50, load.p99, load.refusedP99].map((ms) => ms.toFixed(0))
  const rates = [load.sent, load.served].map((rate) => `${rate.toFixed(0)}/s`)
  printRow(name, [
    ...rates,
    ...times,
    load.others,
    recoveryMs === null ? '' : recoveryMs.toFixed(0),
  ])
}

type Parts = { target: Gatehouse; sender: Sender; seconds: number }

/** The capacity, and then two and three times as much. The figures are those of the larger load. */
async function measureRun({ target, sender, seconds }: Parts): Promise<OverloadRun> {
  const sets = headerSets(target)
  const job = { url: target.url, headerSets: sets }
  const lossesBefore = await target.countRedisLosses()
  const readOthers = await watchMachine()
  printRow('', columns)
  const quiet = await sender.send({ ...job, seconds: capacitySeconds, connections })
  const capacity = loadFiguresOf(quiet, capacitySeconds)
  printLoad('capacity', capacity, null)
  let [goodput, p99] = [NaN, NaN]
  for (const times of [2, 3]) {
    const ended = await sender.send({ ...job, seconds, perSecond: capacity.served * times })
    const recoveryMs = await measureRecovery(target, sets[0] ?? {})
    const load = loadFiguresOf(ended, seconds)
    printLoad(`${times} times`, load, recoveryMs)
    ;[goodput, p99] = [load.served / capacity.served, load.p99]
    console.log(`  goodput ${(goodput * 100).toFixed(0)} % of the capacity`)
    await sleep(restMs)
  }
  const redisLosses = (await target.countRedisLosses()) - lossesBefore
  const lost = redisLosses === 0 ? 'never' : `${redisLosses} times`
  const others = ((await readOthers()) * 100).toFixed(0)
  console.log(
    `Gatehouse counted limits without Redis: ${lost}. Other processes took ${others} % of the cores.\n`,
  )
  return { goodput, p99, redisLosses }
}

function readNumber(name: string, value: string): number {
  const number = Number(value)
  if (!Number.isInteger(number) || number < 1) refuse('bench overload', `${name} takes a number.`)
  return number
}

async function run() {
  const { values } = readOptions('bench overload', {
    options: {
      seconds: { type: 'string', default: '60' },
      runs: { type: 'string', default: '1' },
    },
  })
  const seconds = readNumber('--seconds', values.seconds)
  const runs = readNumber('--runs', values.runs)
  await using cleanup = new AsyncDisposableStack()
  const stopEarly = () => void cleanup.disposeAsync()
  process.once('SIGINT', stopEarly).once('SIGTERM', stopEarly)
  console.log(`Starting; ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}.`)
  const upstream = await deferStop(await startUpstream(), cleanup)
  const target = await deferStop(
    await startGatehouse({
      upstream: upstream.url,
      environment: { REDIS_DEADLINE_MS: '40' },
    }),
    cleanup,
  )
  const sender = await deferStop(await startSender(), cleanup)
  pin(target.pids, 0)
  pin([...upstream.pids, sender.pid], 1)
  const warmUp = { url: target.url, headerSets: headerSets(target), seconds: 5, connections }
  await sender.send(warmUp)
  console.log(`Capacity over ${connections} connections, then ${seconds} s each at a fixed rate.\n`)
  const measured: OverloadRun[] = []
  while (measured.length < runs) measured.push(await measureRun({ target, sender, seconds }))
  console.log(budgetTableOf(overloadFiguresOf(measured)))
}

await run()
