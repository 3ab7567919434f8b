import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'

import { waitingRatio } from '@gatehouse/tools/testing/duration-ratio'
import { afterAll, expect, test } from 'vitest'

import { createTenantEgress } from '#platform/egress.ts'

import { closeServers, isPublic, listen, makeCertificate, standIn } from './testing/trap.ts'

// What one tenant may use of the client that all tenants share.

const tls = makeCertificate()
const usual = { method: 'GET', deadlineMs: 10_000, answerLimitBytes: 1000 } as const

afterAll(closeServers)

/** How many sockets of a server are open, and how many were at most. */
function watchSockets(server: Server) {
  const watched = { open: 0, most: 0, opened: 0 }
  server.on('connection', (socket: Socket) => {
    watched.open += 1
    watched.opened += 1
    watched.most = Math.max(watched.most, watched.open)
    socket.on('close', () => (watched.open -= 1)).on('error', () => undefined)
  })
  return watched
}

async function startSink(onRequest: RequestListener) {
  const server = createServer({ ...tls, keepAliveTimeout: 60_000 }, onRequest)
  const sockets = watchSockets(server)
  const port = await listen(server, standIn)
  return { sockets, port, addressOf: (name: string) => `https://${name}.example.com:${port}/` }
}

/** A client for which every name leads to the stand-in; `asked` lists the names in the order of connections. */
function createClient(options: Partial<Parameters<typeof createTenantEgress>[0]>) {
  const asked: string[] = []
  const resolve = async (host: string) => {
    asked.push(host.replace('.example.com', ''))
    return [{ address: standIn }]
  }
  const usualOptions = { privateTargets: [], isPublic, ca: [tls.cert], resolve }
  return { asked, egress: createTenantEgress({ ...usualOptions, ...options }) }
}

test('2,000 origins leave a bounded number of sockets open', { timeout: 60_000 }, async () => {
  const { sockets, port, addressOf } = await startSink((_, response) => response.end('hello'))
  const { egress } = createClient({ ports: [port] })
  const names = Array.from({ length: 2000 }, (_, index) => `sink-${index}`)
  const callAll = async () => {
    for (let name = names.pop(); name; name = names.pop()) {
      expect((await egress.request(addressOf(name), usual)).status).toBe(200)
    }
  }
  const callers = 20
  await Promise.all(Array.from({ length: callers }, callAll))
  expect(sockets.opened).toBe(2000)
  // Some are still open at the server when the client has closed them.
  expect(sockets.most).toBeLessThan(2 * (64 + callers))
  await expect.poll(() => sockets.open).toBeLessThanOrEqual(64)
  await egress.close()
})

test('the connections that were not used for longest are closed', async () => {
  const { port, addressOf } = await startSink((_, response) => response.end('hello'))
  const { asked, egress } = createClient({ ports: [port], limits: { idleOriginsMax: 3 } })
  for (const name of ['a', 'b', 'c', 'a', 'd', 'a', 'c', 'b']) {
    await egress.request(addressOf(name), usual)
  }
  expect(asked).toEqual(['a', 'b', 'c', 'd', 'b'])
  await egress.close()
})

test('an origin that does not answer cannot take the connections of another', async () => {
  const { sockets, port, addressOf } = await startSink((request, response) => {
    if (request.headers.host?.startsWith('quick')) response.end('hello')
  })
  const { egress } = createClient({ ports: [port], limits: { callsMax: 10 } })
  const stuck = Array.from({ length: 50 }, () =>
    egress.request(addressOf('stuck'), { ...usual, deadlineMs: 1000 }),
  )
  const outcomes = Promise.allSettled(stuck)
  expect((await egress.request(addressOf('quick'), usual)).status).toBe(200)
  expect(sockets.most).toBe(5)
  const sentence = 'The destination did not answer within 1000 ms.'
  for (const outcome of await outcomes) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { message: sentence } })
  }
  expect((await egress.request(addressOf('quick'), usual)).status).toBe(200)
  await egress.close()
})

test('destinations that never finish TLS hold no more sockets than calls are allowed', async () => {
  const server = createTcpServer((socket) => socket.resume())
  const sockets = watchSockets(server)
  const port = await listen(server, standIn)
  const limits = { callsMax: 8, idleOriginsMax: 4 }
  const { egress } = createClient({ ports: [port], limits, connectTimeoutMs: 600 })
  const calls = Array.from({ length: 40 }, (_, index) =>
    egress.request(`https://stuck-${index}.example.com:${port}/`, { ...usual, deadlineMs: 100 }),
  )
  expect((await Promise.allSettled(calls)).every(({ status }) => status === 'rejected')).toBe(true)
  expect(sockets.most).toBeLessThanOrEqual(8)
  await expect.poll(() => sockets.open, { timeout: 5000 }).toBe(0)
  await egress.close()
})

test('calls wait for their turn instead of being refused', async () => {
  const { sockets, port, addressOf } = await startSink((_, response) => {
    setTimeout(() => response.end('hello'), 5)
  })
  const { egress } = createClient({ ports: [port], limits: { callsMax: 6 } })
  const names = Array.from({ length: 60 }, (_, index) => `sink-${index % 12}`)
  const answers = await Promise.all(names.map((name) => egress.request(addressOf(name), usual)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(sockets.opened).toBeLessThanOrEqual(48)
  await egress.close()
})

test('a body of 1 MB arrives whole', async () => {
  const { port, addressOf } = await startSink((request, response) => {
    let sizeBytes = 0
    request.on('data', (chunk: Buffer) => (sizeBytes += chunk.length))
    request.on('end', () => response.end(String(sizeBytes)))
  })
  const { egress } = createClient({ ports: [port] })
  for (const body of ['a'.repeat(1_000_000), Buffer.alloc(1_000_000)]) {
    const answer = await egress.request(addressOf('sink'), { ...usual, method: 'POST', body })
    expect(answer.body.toString()).toBe('1000000')
  }
  await egress.close()
})

test.each([
  {
    name: 'a body that the server does not read',
    onRequest: (() => undefined) satisfies RequestListener,
  },
  {
    name: 'an answer that stops after its headers',
    onRequest: ((_, response) => void response.writeHead(200).write('a')) satisfies RequestListener,
  },
  {
    name: 'an answer that drips',
    onRequest: ((_, response) => {
      const timer = setInterval(() => response.write('.'), 20)
      response.on('close', () => clearInterval(timer))
    }) satisfies RequestListener,
  },
])('the deadline covers $name, and the connection is ended', async ({ onRequest }) => {
  let goOn = () => {}
  const { sockets, port, addressOf } = await startSink((request, response) => {
    goOn = () => request.resume()
    onRequest(request, response)
  })
  const { egress } = createClient({ ports: [port] })
  const body = Buffer.alloc(8_000_000)
  const ratio = await waitingRatio('the deadline', 500, async () => {
    const call = { ...usual, method: 'POST', body, deadlineMs: 500 } as const
    const late = egress.request(addressOf('sink'), call)
    await expect(late).rejects.toThrow('The destination did not answer within 500 ms.')
  })
  expect(ratio).toBeLessThan(5)
  goOn() // the server sees the end of the connection only behind what it has not read
  await expect.poll(() => sockets.open).toBe(0)
  await egress.close()
})

test('an endless answer is cut at the limit, and the connection is ended', async () => {
  let written = 0
  const { sockets, port, addressOf } = await startSink((_, response) => {
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536))) written += 65_536
    }
    response.on('drain', more)
    more()
  })
  const { egress } = createClient({ ports: [port] })
  const call = egress.request(addressOf('sink'), usual)
  await expect(call).rejects.toThrow('The answer is larger than 1000 bytes.')
  await expect.poll(() => sockets.open).toBe(0)
  expect(written).toBeLessThan(50_000_000)
  await egress.close()
})
