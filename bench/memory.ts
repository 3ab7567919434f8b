import { setTimeout as sleep } from 'node:timers/promises'

import { readOptions } from '@gatehouse/tools/help/read-options'
import { useBuiltProgram } from '@gatehouse/tools/program'
import { stackModels } from '@gatehouse/tools/stack-models'
import { createTenants, startStack } from '@gatehouse/tools/start-stack'

import { deferStop } from './defer-stop.ts'
import type { Job, Report } from './memory-sender.ts'
import { memoryMegabytes, pin } from './process-usage.ts'
import { pidOf, startChild } from './targets/child.ts'
import { startUpstream } from './targets/start-targets.ts'

// The memory of one process that holds ten thousand hostile connections, and what healthy callers notice of it.

const organizations = 100
const healthyPerSecond = 10
const openingMs = 30_000
/** The last of them have been served or refused then. */
const settlingMs = 15_000

/** Calls at a fixed rate; the times of those that were served, and how many were not. */
async function callHealthily(url: string, keys: readonly string[], seconds: number) {
  const body = JSON.stringify({
    model: 'gpt-scripted',
    messages: [{ role: 'user', content: 'Hello.' }],
    max_completion_tokens: 20,
  })
  const times: number[] = []
  let refused = 0
  const calls: Promise<void>[] = []
  for (let call = 0; call < seconds * healthyPerSecond; call++) {
    const authorization = `Bearer ${keys[call % keys.length]}`
    const headers = { authorization, 'content-type': 'application/json' }
    const startedAt = performance.now()
    const answer = fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
    calls.push(
      answer.then(async (response) => {
        await response.text()
        if (response.status === 200) times.push(performance.now() - startedAt)
        else refused++
      }),
    )
    await sleep(1000 / healthyPerSecond)
  }
  await Promise.all(calls)
  const sorted = times.toSorted((left, right) => left - right)
  const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? NaN
  return { p50: at(0.5), p99: at(0.99), refused }
}

async function startSender() {
  const { child, pid, stop } = await startChild(new URL('memory-sender.ts', import.meta.url))
  return {
    pid,
    stop,
    begin: (job: Job) => void child.send(job),
    report: () =>
      new Promise<Report>((resolve) => {
        child.once('message', (report) => resolve(report as Report))
        child.send('report')
      }),
  }
}

async function run() {
  const { values } = readOptions('bench memory', {
    options: {
      seconds: { type: 'string', default: '60' },
      each: { type: 'string', default: '2500' },
    },
  })
  const seconds = Number(values.seconds)
  await using cleanup = new AsyncDisposableStack()
  const stopEarly = () => void cleanup.disposeAsync()
  process.once('SIGINT', stopEarly).once('SIGTERM', stopEarly)
  const upstream = await deferStop(await startUpstream(), cleanup)
  const models = stackModels({ scripted: upstream.url })
  const upstreams = Object.entries(models.upstreams).map(
    ([name, entry]) => [name, { ...entry, connections: 10_000 }] as const,
  )
  await useBuiltProgram()
  const stack = await deferStop(
    await startStack({
      models: () => ({ ...models, upstreams: Object.fromEntries(upstreams) }),
      environment: { LOG_LEVEL: 'info', CONNECTIONS_MAX: '20000' },
    }),
    cleanup,
  )
  const [healthy, ...hostile] = (await createTenants(stack.service, organizations + 1)).map(
    ({ project_key }) => project_key,
  )
  const { base_url: url } = stack.description
  const pids = stack.apis.map(({ child }) => pidOf(child))
  const sender = await deferStop(await startSender(), cleanup)
  pin(pids, 0)
  pin([...upstream.pids, sender.pid], 1)
  await callHealthily(url, [healthy ?? ''], 5)
  const quiet = await callHealthily(url, [healthy ?? ''], 20)
  const quietMegabytes = await memoryMegabytes(pids)

  sender.begin({ url, keys: hostile, each: Number(values.each), openingMs })
  let most = 0
  const watch = setInterval(() => {
    void memoryMegabytes(pids).then((megabytes) => (most = Math.max(most, megabytes)))
  }, 200)
  await sleep(openingMs + settlingMs)
  const attacked = await callHealthily(url, [healthy ?? ''], seconds)
  clearInterval(watch)
  const { open, statuses } = await sender.report()
  console.log(
    `${open} connections are open. Answers to hostile requests: ${JSON.stringify(statuses)}`,
  )
  console.log(`memory: ${quietMegabytes.toFixed(0)} MB quiet, ${most.toFixed(0)} MB at most`)
  for (const [name, { p50, p99, refused }] of Object.entries({ quiet, attacked })) {
    const times = `p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`
    console.log(`healthy callers, ${name}: ${times}, ${refused} not served`)
  }
  console.log(`ratio of the p99: ${(attacked.p99 / quiet.p99).toFixed(1)}`)
}

await run()
