import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import type { Writable } from 'node:stream'

// The minimum that a proxy in Node can do: it streams bodies in both directions with backpressure and inspects
// nothing. It uses the service's own undici, so that the HTTP client makes no difference in the comparison.

type Headers = IncomingMessage['headers']
type Sent = { path: string; method: string; headers: Headers; body: IncomingMessage }
type Received = { statusCode: number; headers: Headers }
type Pool = { stream(sent: Sent, answer: (head: Received) => Writable): Promise<unknown> }

const service = createRequire(new URL('../../service/package.json', import.meta.url))
const undici = service('undici') as { Pool: new (origin: string) => Pool }
const pool = new undici.Pool(process.env['UPSTREAM'] ?? '')

function withoutHopHeaders(headers: Headers): Headers {
  const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, host: ____, ...rest } = headers
  return rest
}

async function forward(request: IncomingMessage, response: ServerResponse) {
  const { url: path = '/', method = 'GET' } = request
  const sent = { path, method, headers: withoutHopHeaders(request.headers), body: request }
  await pool.stream(sent, ({ statusCode, headers }) =>
    response.writeHead(statusCode, withoutHopHeaders(headers)),
  )
}

const server = createServer((request, response) => {
  forward(request, response).catch(() => response.destroy())
})
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
process.on('disconnect', () => process.exit(0))
