import { Agent, request } from 'node:http'

import { timingOf, type Timing } from '#support/baseline/ratio.ts'

// A separate process that times reads of lists, so that pauses of the test runner do not count as the service's. Each
// client alternates between a list of the service and a page of the bare list server.

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
  const runClient = async () => {
    while (sent < lists) {
      measured.push(await readPage(address, keys[sent++ % keys.length] ?? ''))
      baseline.push(await readPage(baselineAddress, ''))
    }
  }
  await Promise.all(Array.from({ length: clients }, runClient))
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
