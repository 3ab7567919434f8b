import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import { scoresMarkedIn } from '@gatehouse/tools/testing/marked-scores'

// OpenAI's moderation endpoint, as far as a caller can tell who sends harmless texts, which takes `DELAY_MS` and no work.
// A GET tells how many texts it has scored.

const names = Object.keys(scoresMarkedIn(''))
const harmless = {
  flagged: false,
  categories: Object.fromEntries(names.map((name) => [name, false])),
  category_scores: Object.fromEntries(names.map((name) => [name, 0.0001])),
  category_applied_input_types: Object.fromEntries(names.map((name) => [name, ['text']])),
}

const delayMs = Number(process.env['DELAY_MS'] ?? 0)
let scored = 0

async function answer(request: IncomingMessage): Promise<object> {
  if (request.method === 'GET') return { scored }
  const { model, input } = JSON.parse(await text(request)) as { model: string; input: string[] }
  scored += input.length
  if (delayMs > 0) await sleep(delayMs)
  return { id: `modr-${scored}`, model, results: input.map(() => harmless) }
}

const server = createServer((request, response) => {
  answer(request).then(
    (body) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    },
    () => response.destroy(),
  )
})
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
process.on('disconnect', () => process.exit(0))
