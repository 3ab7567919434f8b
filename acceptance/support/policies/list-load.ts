import { Agent, request } from 'node:http'

import { timingOf, type Timing } from '#support/baseline/ratio.ts'

// A separate process that times reads of lists, so that pauses of the test runner do not count as the service's. All
// clients read lists of the service for a moment, then all read pages of the bare list server, and so on: in both they
// wait for each other, and a busy machine slows both.

export type ListLoad = {
  address: string
  keys: string[]
  baselineAddress: string
  clients: number
  /** Of all clients together. */
  lists: number
}
export type ListTimings = { measured: Timing; baseline: Timing; perSecond: number }

const agent = new Agent({ keepAlive: true })
/** Of each client, until it is the other server's turn. */
const pagesInTurn = 5

function readPage(address: string, key: string): Promise<number> {
  const sentAt = performance.now()
  return new Promise((resolve, reject) => {
    request(address, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.once('end', () => {
        const isFullPage = response.statusCode === 200 && text.includes('"has_more":true')
        if (isFullPage) resolve(performance.now() - sentAt)
        else reject(new Error(text))
      })
    })
      .once('error', reject)
      .end()
  })
}

async function measure(load: ListLoad): Promise<ListTimings> {
  const { address, keys, baselineAddress, clients, lists } = load
  const startedAt = performance.now()
  const [measured, baseline]: [number[], number[]] = [[], []]
  let sent = 0
  const readAll = async (times: number[], read: () => Promise<number>) => {
    const runClient = async () => {
      for (let page = 0; page < pagesInTurn; page++) times.push(await read())
    }
    await Promise.all(Array.from({ length: clients }, runClient))
  }
  while (sent < lists) {
    await readAll(measured, () => readPage(address, keys[sent++ % keys.length] ?? ''))
    await readAll(baseline, () => readPage(baselineAddress, ''))
  }
  const perSecond = Math.round((1000 * sent) / (performance.now() - startedAt))
  return { measured: timingOf(measured), baseline: timingOf(baseline), perSecond }
}

process.on('message', (message) => {
  measure(message as ListLoad).then(
    (timings) => process.send?.(timings),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
