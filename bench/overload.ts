import { availableParallelism, loadavg } from 'node:os'

import { readOptions } from '@gatehouse/tools/help/read-options'

import { bodyOf, path } from './chat-call.ts'
import { deferStop } from './defer-stop.ts'
import { headerSets } from './header-sets.ts'
import type { Ended, Job } from './overload-sender.ts'
import { pin } from './process-usage.ts'
import { startChild } from './targets/child.ts'
import { startGatehouse } from './targets/gatehouse.ts'
import { startUpstream } from './targets/start-targets.ts'
import type { Target } from './targets/target.ts'

// How one process behaves when it gets two and three times the calls that it can serve. The process has a core to
// itself; the sender and the upstream share the other.

const connections = 64
const recoveryMaxMs = 10_000

async function startSender() {
  const { child, pid, stop } = await startChild(new URL('overload-sender.ts', import.meta.url))
  const send = (job: Job) =>
    new Promise<Ended[]>((resolve) => {
      child.once('message', (ended) => resolve(ended as Ended[]))
      child.send(job)
    })
  return { send, pid, stop }
}

const percentile = (values: readonly number[], share: number) =>
  values.toSorted((left, right) => left - right)[Math.ceil(values.length * share) - 1] ?? NaN

const timesOf = (ended: readonly Ended[]) => ended.map(({ sentAt, doneAt }) => doneAt - sentAt)
const isServed = ({ status }: Ended) => status === 200

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

/** How many there are of each status; 0 stands for a connection that failed. */
function describe(ended: readonly Ended[]): string {
  const counts = Object.entries(Object.groupBy(ended, ({ status }) => status))
  return counts.map(([status, calls]) => `${calls?.length} x ${status}`).join(', ') || '-'
}

function rowOf(name: string, ended: readonly Ended[], seconds: number, recoveryMs: number | null) {
  const served = ended.filter(isServed)
  const isRefused = ({ status }: Ended) => status === 503 || status === 529
  const refused = ended.filter(isRefused)
  const others = ended.filter((call) => !isServed(call) && !isRefused(call))
  const inTime = served.filter(({ doneAt }) => doneAt <= seconds * 1000).length / seconds
  const cells = [
    `${(ended.length / seconds).toFixed(0)}/s`,
    `${inTime.toFixed(0)}/s`,
    percentile(timesOf(served), 0.5).toFixed(0),
    percentile(timesOf(served), 0.99).toFixed(0),
    percentile(timesOf(refused), 0.99).toFixed(0),
    describe(others),
    recoveryMs === null ? '' : recoveryMs.toFixed(0),
  ]
  console.log(name.padEnd(16) + cells.map((cell) => cell.padStart(12)).join(''))
  return inTime
}

async function run() {
  const { values } = readOptions('bench overload', {
    options: { seconds: { type: 'string', default: '60' } },
  })
  const seconds = Number(values.seconds)
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
  const sets = headerSets(target)
  const job = { url: target.url, headerSets: sets }
  await sender.send({ ...job, seconds: 5, connections })

  console.log(`Capacity over ${connections} connections, then ${seconds} s each at a fixed rate.\n`)
  const columns = ['sent', 'served', 'p50 ms', 'p99 ms', 'refused p99', 'other', 'recovery ms']
  console.log(''.padEnd(16) + columns.map((column) => column.padStart(12)).join(''))
  const quiet = await sender.send({ ...job, seconds: 10, connections })
  const capacity = rowOf('capacity', quiet, 10, null)
  for (const times of [2, 3]) {
    const ended = await sender.send({ ...job, seconds, perSecond: capacity * times })
    const recoveryMs = await measureRecovery(target, sets[0] ?? {})
    const served = rowOf(`${times} times`, ended, seconds, recoveryMs)
    console.log(`  goodput ${((served / capacity) * 100).toFixed(0)} % of the capacity`)
    await new Promise((resolve) => setTimeout(resolve, 3000))
  }
  console.log(`\n${(await target.caveat?.()) ?? 'Redis was never taken for away.'}`)
}

await run()
