import { Agent, request } from 'node:http'

import { bodyOf, path } from '../chat-call.ts'

// Sends calls in a process of its own and notes what came of each. Open loop: at a rate, whatever comes back. Closed
// loop: a number of connections, each with one call after another.

export type Job = {
  url: string
  headerSets: Record<string, string>[]
  seconds: number
} & ({ perSecond: number } | { connections: number })

/** What came of one call: 0 for a connection that failed. Times are milliseconds from the start of the job. */
export type Ended = { status: number; sentAt: number; doneAt: number }

const agent = new Agent({ keepAlive: true, maxSockets: 20_000, maxFreeSockets: 20_000 })
const answerMaxMs = 30_000
const body = bodyOf('plain')
let turn = 0

function call({ url, headerSets }: Job, startedAt: number): Promise<Ended> {
  const headers = { ...headerSets[turn++ % headerSets.length], 'content-length': body.length }
  const sentAt = performance.now() - startedAt
  return new Promise((resolve) => {
    const end = (status: number) =>
      resolve({ status, sentAt, doneAt: performance.now() - startedAt })
    const sent = request(url + path, { method: 'POST', agent, headers }, (answer) => {
      answer.resume().once('end', () => end(answer.statusCode ?? 0))
      answer.once('error', () => end(0))
    })
    sent.setTimeout(answerMaxMs, () => sent.destroy())
    sent.once('error', () => end(0)).end(body)
  })
}

async function runOpen(job: Job, perSecond: number): Promise<Ended[]> {
  const startedAt = performance.now()
  const running: Promise<Ended>[] = []
  for (let passed = 0; passed < job.seconds * 1000; passed = performance.now() - startedAt) {
    while (running.length < (passed / 1000) * perSecond) running.push(call(job, startedAt))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  return Promise.all(running)
}

async function runClosed(job: Job, connections: number): Promise<Ended[]> {
  const startedAt = performance.now()
  const ended: Ended[] = []
  const keepCalling = async () => {
    while (performance.now() - startedAt < job.seconds * 1000) {
      ended.push(await call(job, startedAt))
    }
  }
  await Promise.all(Array.from({ length: connections }, keepCalling))
  return ended
}

process.on('message', (message) => {
  const job = message as Job
  const run = 'perSecond' in job ? runOpen(job, job.perSecond) : runClosed(job, job.connections)
  void run.then((ended) => process.send?.(ended))
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
