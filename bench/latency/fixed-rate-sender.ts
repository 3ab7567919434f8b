import { Agent, request } from 'node:http'

import { bodyOf, findDefect, type Mode, path } from '../chat-call.ts'

// Sends requests at a fixed rate from a process of its own, regardless of when answers arrive. A latency is measured
// from the time at which the request was due, so that neither a slow target nor a slow sender can hide a delay.

export type Job = {
  name: string
  /** Used in turn, one per request. */
  urls: readonly string[]
  mode: Mode
  headerSets: Record<string, string>[]
  perSecond: number
  seconds: number
}

/** Milliseconds until the first byte of the body, and until its end. */
export type Times = { first: number[]; whole: number[] }

type Answer = { status: number; chunks: Buffer[]; firstAt: number; doneAt: number }

const agent = new Agent({ keepAlive: true })

function send(job: Job, index: number, body: string): Promise<Answer> {
  const headers = job.headerSets[index % job.headerSets.length] ?? {}
  const sized = { ...headers, 'content-length': body.length }
  const url = job.urls[index % job.urls.length] ?? ''
  return new Promise((resolve, reject) => {
    const call = request(url + path, { method: 'POST', agent, headers: sized }, (answer) => {
      const chunks: Buffer[] = []
      let firstAt = 0
      answer.once('error', reject).on('data', (chunk: Buffer) => {
        firstAt ||= performance.now()
        chunks.push(chunk)
      })
      answer.once('end', () =>
        resolve({ status: answer.statusCode ?? 0, chunks, firstAt, doneAt: performance.now() }),
      )
    })
    call.setTimeout(10_000, () => call.destroy(new Error('An answer took over ten seconds.')))
    call.once('error', reject).end(body)
  })
}

async function run(job: Job): Promise<Times> {
  const body = bodyOf(job.mode)
  const startedAt = performance.now() + 50
  const count = Math.round(job.perSecond * job.seconds)
  const running = Array.from({ length: count }, async (_, index) => {
    const dueAt = startedAt + (index * 1000) / job.perSecond
    await new Promise((resolve) => setTimeout(resolve, dueAt - performance.now()))
    // Node's timers may fire a millisecond early; such a request is measured from when it was sent.
    const from = Math.min(dueAt, performance.now())
    return { from, ...(await send(job, index, body)) }
  })
  const answers = await Promise.all(running)
  for (const { status, chunks } of answers) {
    const defect = findDefect(job.mode, status, Buffer.concat(chunks).toString())
    if (defect) throw new Error(`${job.name} returned ${defect}.`)
  }
  return {
    first: answers.map(({ firstAt, from }) => firstAt - from),
    whole: answers.map(({ doneAt, from }) => doneAt - from),
  }
}

process.on('message', (job) => {
  run(job as Job).then(
    (times) => process.send?.({ times }),
    (error: unknown) => process.send?.({ problem: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
