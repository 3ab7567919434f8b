import { Agent, request } from 'node:http'

import { bodyOf, type Mode, path, whyWrong } from './chat-call.ts'

// Sends at a fixed rate from a process of its own, whatever the answers do. A time counts from the
// moment the request was due: neither a slow target nor a slow sender can hide a wait.

export type Order = {
  name: string
  url: string
  mode: Mode
  headerSets: Record<string, string>[]
  perSecond: number
  seconds: number
}

type Answered = { status: number; chunks: Buffer[]; doneAt: number }

const agent = new Agent({ keepAlive: true })

function send(order: Order, index: number, body: string): Promise<Answered> {
  const headers = order.headerSets[index % order.headerSets.length] ?? {}
  const sized = { ...headers, 'content-length': body.length }
  return new Promise((resolve, reject) => {
    const call = request(order.url + path, { method: 'POST', agent, headers: sized }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk)).once('error', reject)
      answer.once('end', () =>
        resolve({ status: answer.statusCode ?? 0, chunks, doneAt: performance.now() }),
      )
    })
    call.setTimeout(10_000, () => call.destroy(new Error('An answer took over ten seconds.')))
    call.once('error', reject).end(body)
  })
}

async function run(order: Order): Promise<number[]> {
  const body = bodyOf(order.mode)
  const startedAt = performance.now() + 50
  const running = Array.from({ length: order.perSecond * order.seconds }, async (_, index) => {
    const dueAt = startedAt + (index * 1000) / order.perSecond
    await new Promise((resolve) => setTimeout(resolve, dueAt - performance.now()))
    // Node's timers may fire a millisecond early: such a request counts from when it was sent.
    const from = Math.min(dueAt, performance.now())
    return { from, ...(await send(order, index, body)) }
  })
  const answers = await Promise.all(running)
  for (const { status, chunks } of answers) {
    const wrong = whyWrong(order.mode, status, Buffer.concat(chunks).toString())
    if (wrong) throw new Error(`${order.name} gave ${wrong}.`)
  }
  return answers.map(({ doneAt, from }) => doneAt - from)
}

process.on('message', (order) => {
  run(order as Order).then(
    (times) => process.send?.({ times }),
    (error: unknown) => process.send?.({ problem: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
