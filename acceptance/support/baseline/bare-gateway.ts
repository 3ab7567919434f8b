import { Agent, createServer, request, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'

import pg from 'pg'

// The minimum that a gateway like ours does for a call: one round trip to Redis, one commit in PostgreSQL, then the
// upstream, whose answer is piped through. The service's time to first token is compared with it at the same time.

export type BareGateway = { upstreamUrl: string; databaseUrl: string; redisUrl: string }

const agent = new Agent({ keepAlive: true })

function createPing(socket: Socket): () => Promise<void> {
  const waiting: (() => void)[] = []
  socket.on('data', (chunk) => {
    for (const _ of chunk.toString().matchAll(/\+PONG/g)) waiting.shift()?.()
  })
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      socket.write('PING\r\n')
    })
}

function passOn(upstream: URL, body: Buffer, response: ServerResponse) {
  const headers = { 'content-type': 'application/json', 'content-length': body.length }
  const call = request(upstream, { method: 'POST', agent, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 500, { 'content-type': answer.headers['content-type'] })
    answer.pipe(response)
  })
  call.once('error', () => response.destroy())
  call.end(body)
}

async function serve({ upstreamUrl, databaseUrl, redisUrl }: BareGateway): Promise<string> {
  const { hostname, port } = new URL(redisUrl)
  const ping = createPing(connect(Number(port || 6379), hostname).setNoDelay(true))
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 })
  await pool.query('create table baseline_hold (at timestamptz not null)')
  const server = createServer((received, response) => {
    const handle = async () => {
      const body = await buffer(received)
      await ping()
      await pool.query('insert into baseline_hold values (now())')
      passOn(new URL(received.url ?? '', upstreamUrl), body, response)
    }
    handle().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

process.on('message', (message) => {
  serve(message as BareGateway).then(
    (address) => process.send?.({ address }),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
