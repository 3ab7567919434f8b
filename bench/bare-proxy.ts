import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import type { Writable } from 'node:stream'

// The least that a proxy in Node can do: bodies go through in both directions, as fast as the slower
// side takes them, and nothing is looked at. It uses the service's own undici, so that the two differ
// in what they do and not in what they do it with.

type Headers = IncomingMessage['headers']
type Sent = { path: string; method: string; headers: Headers; body: IncomingMessage }
type Received = { statusCode: number; headers: Headers }
type Pool = { stream(sent: Sent, answer: (head: Received) => Writable): Promise<unknown> }

const service = createRequire(new URL('../service/package.json', import.meta.url))
const undici = service('undici') as { Pool: new (origin: string) => Pool }
const pool = new undici.Pool(process.env['UPSTREAM'] ?? '')

function withoutHops(headers: Headers): Headers {
  const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, host: ____, ...rest } = headers
  return rest
}

async function pass(request: IncomingMessage, response: ServerResponse) {
  const { url: path = '/', method = 'GET' } = request
  const sent = { path, method, headers: withoutHops(request.headers), body: request }
  await pool.stream(sent, ({ statusCode, headers }) =>
    response.writeHead(statusCode, withoutHops(headers)),
  )
}

const server = createServer((request, response) => {
  pass(request, response).catch(() => response.destroy())
})
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
process.on('disconnect', () => process.exit(0))
