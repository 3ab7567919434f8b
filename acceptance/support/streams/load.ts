import { Agent, request } from 'node:http'

import { timingOf, type Timing } from '#support/baseline/ratio.ts'

// A separate process that opens streams at a steady rate and measures their time to first token, so that pauses of the
// test runner do not count as the service's.

export type StreamLoad = {
  /** Called in turn, so that a busy machine slows all of them. */
  addresses: string[]
  keys: string[]
  /** `<number>` in it is another number in each request. */
  body: string
  /** Text that arrives with the first token. */
  sign: string
  /** Streams per address. */
  count: number
  everyMs: number
}

const agent = new Agent({ keepAlive: true })

type Stream = { address: string; key: string }
let requests = 0

function firstToken({ address, key }: Stream, { body, sign }: StreamLoad): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now()
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
    }
    const call = request(address, { method: 'POST', agent, headers }, (response) => {
      let text = ''
      let tookMs = Infinity
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
        if (tookMs === Infinity && text.includes(sign)) tookMs = performance.now() - startedAt
      })
      response.once('end', () => {
        if (response.statusCode === 200 && tookMs < Infinity) resolve(tookMs)
        else reject(new Error(text.slice(0, 500)))
      })
    })
    call.once('error', reject).end(body.replaceAll('<number>', String(++requests)))
  })
}

async function openStreams(load: StreamLoad): Promise<Timing[]> {
  const { addresses, keys, count, everyMs } = load
  const startedAt = performance.now()
  const streamsTo = (address: string, turn: number) =>
    Array.from({ length: count }, async (_, index) => {
      const dueAt = startedAt + (index + turn / addresses.length) * everyMs
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueAt - performance.now())))
      return firstToken({ address, key: keys[index % keys.length] ?? '' }, load)
    })
  const running = addresses.map((address, turn) => Promise.all(streamsTo(address, turn)))
  return (await Promise.all(running)).map(timingOf)
}

process.on('message', (message) => {
  openStreams(message as StreamLoad).then(
    (timings) => process.send?.({ timings }),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
