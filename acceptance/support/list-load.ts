import { Agent, request } from 'node:http'

import { atFixedRate, percentile } from './fixed-rate.ts'

// A process of its own that sends lists at a fixed rate and reports how long they took: the pauses of
// a test runner must not be taken for the service's.

type Load = { address: string; keys: string[]; perSecond: number; seconds: number }

const agent = new Agent({ keepAlive: true })

function list(address: string, key: string): Promise<void> {
  return new Promise((resolve, reject) => {
    request(address, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.once('end', () => {
        const isFullPage = response.statusCode === 200 && text.includes('"has_more":true')
        if (isFullPage) resolve()
        else reject(new Error(text))
      })
    })
      .once('error', reject)
      .end()
  })
}

process.on('message', (message) => {
  const { address, keys, ...rate } = message as Load
  atFixedRate(rate, (index) => list(address, keys[index % keys.length] ?? '')).then(
    (times) => process.send?.({ p50: percentile(times, 0.5), p99: percentile(times, 0.99) }),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
