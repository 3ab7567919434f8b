import { Agent, request } from 'node:http'

import { percentile } from './fixed-rate.ts'

// A process of its own that opens streams at a steady pace and reports how long their first tokens took: the
// pauses of a test runner must not be taken for the service's.

export type StreamLoad = {
  /** They take turns, so that whatever disturbs one disturbs the other. */
  addresses: string[]
  keys: string[]
  body: string
  /** What the first token looks like. */
  sign: string
  /** For each address. */
  count: number
  everyMs: number
}
export type Figures = { p50: number; p99: number }

const agent = new Agent({ keepAlive: true })

type Stream = { address: string; key: string }

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
    call.once('error', reject).end(body)
  })
}

async function openStreams(load: StreamLoad): Promise<Figures[]> {
  const { addresses, keys, count, everyMs } = load
  const startedAt = performance.now()
  const streamsTo = (address: string, place: number) =>
    Array.from({ length: count }, async (_, index) => {
      const dueAt = startedAt + (index + place / addresses.length) * everyMs
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueAt - performance.now())))
      return firstToken({ address, key: keys[index % keys.length] ?? '' }, load)
    })
  const running = addresses.map((address, place) => Promise.all(streamsTo(address, place)))
  return (await Promise.all(running)).map((times) => {
    const sorted = times.toSorted((left, right) => left - right)
    return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
  })
}

process.on('message', (message) => {
  openStreams(message as StreamLoad).then(
    (figures) => process.send?.({ figures }),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
