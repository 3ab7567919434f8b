import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

import { expect, onTestFinished, test, vi } from 'vitest'

import { Cancellation } from './calls/cancellation.ts'
import type { StreamedAnswer } from './calls/streamed-answer.ts'
import { createOriginPools, PoolFull } from './origin-pools.ts'

const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n'
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
const end = '0\r\n\r\n'

/** A server that speaks plain TCP: `respond` is called with every request. */
async function startOrigin(respond: (socket: Socket, request: number) => unknown) {
  const sockets: Socket[] = []
  let requests = 0
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      if (bytes.includes('POST ')) respond(socket, ++requests)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

type Changes = { connections?: number; timeoutMs?: number; firstByteTimeoutMs?: number }

async function open(respond: (socket: Socket, request: number) => unknown, changes: Changes = {}) {
  const { origin, sockets } = await startOrigin(respond)
  const { connections = 1, firstByteTimeoutMs = 5000, timeoutMs = 10_000 } = changes
  const settings = { connections, connectTimeoutMs: 5000, firstByteTimeoutMs, idleTimeoutMs: 5000 }
  const target = { origin, settings }
  const pools = createOriginPools()
  onTestFinished(() => pools.close())
  const cancellation = new Cancellation()
  const request = (by = cancellation) =>
    ({
      method: 'POST',
      path: '/',
      headers: {},
      body: '{}',
      cancellation: by,
      timeoutMs,
      createTimeout: () => new Error('took too long'),
    }) as const
  return {
    pools,
    target,
    sockets,
    cancellation,
    stream: (by?: Cancellation) => pools.stream(target, request(by)),
    collect: (maxBytes = 1000) => pools.collect(target, request(), maxBytes),
  }
}

/** Reads an answer to its end: what was taken at a time. */
async function readAll(answer: StreamedAnswer): Promise<string[]> {
  await answer.head()
  const taken: string[] = []
  while (!answer.isRead) {
    const bytes = answer.take()
    if (bytes) taken.push(bytes.toString())
    else await answer.arrival()
  }
  return taken
}

const expectClosed = (socket: Socket | undefined) =>
  vi.waitFor(() => expect(socket?.destroyed).toBe(true))

test('an answer that comes at once is taken at once, however many chunks it has', async () => {
  const { stream, cancellation } = await open((socket) =>
    socket.write(head + chunk('one ') + chunk('two ') + chunk('three') + end),
  )
  const answer = stream()
  expect(await readAll(answer)).toEqual(['one two three'])
  expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/plain'])
  expect(cancellation.followers).toBe(0)
})

test('an answer that comes byte by byte is complete', async () => {
  const { stream } = await open(async (socket) => {
    socket.setNoDelay()
    for (const byte of head + chunk('Hello, ') + chunk('wörld') + end) {
      socket.write(byte, 'latin1')
      await nextTurn()
    }
  })
  expect((await readAll(stream())).join('')).toBe('Hello, w\ufffdrld')
})

test('an origin waits for a reader that does not read, and nothing is lost', async () => {
  const text = 'x'.repeat(64 * 1024)
  const count = 1000
  let sent = 0
  const { stream } = await open(async (socket) => {
    socket.write(head)
    for (; sent < count; sent++) {
      const isFull = !socket.write(chunk(text))
      if (isFull) await new Promise((resolve) => socket.once('drain', resolve))
    }
    socket.write(end)
  })
  const answer = stream()
  await answer.head()
  let before = -1
  while (before !== sent) {
    before = sent
    await sleep(200)
  }
  // The buffers of the system hold some megabytes; all of it would be 64.
  expect(sent).toBeLessThan(count / 2)
  expect(answer.take()?.length).toBeLessThan(1024 * 1024)
  let bytes = 0
  for (const part of await readAll(answer)) bytes += part.length
  expect(bytes).toBeGreaterThan((count - 20) * text.length)
})

const middle = head + chunk('first')

test.each([
  ['before the head', ''],
  ['in the middle of the head', head.slice(0, 30)],
  ['after the head', head],
  ['in the middle', middle],
])('who cancels %s closes the connection and frees its place', async (_, sent) => {
  const { stream, sockets, cancellation } = await open((socket, request) =>
    socket.write(request === 1 ? sent : middle + end),
  )
  const answer = stream()
  await vi.waitFor(() => expect(sockets).toHaveLength(1))
  await sleep(50)
  const reading = readAll(answer)
  cancellation.cancel(new Error('hung up'))
  await expect(reading).rejects.toThrow('hung up')
  await expectClosed(sockets[0])
  expect(cancellation.followers).toBe(0)
  expect(await readAll(stream(new Cancellation()))).toEqual(['first'])
})

test('a request is not sent for a call that is cancelled already, or that is cancelled while the connection opens', async () => {
  let requests = 0
  const { stream, cancellation } = await open(() => requests++)
  const late = new Cancellation()
  const answer = stream(late)
  late.cancel(new Error('hung up'))
  await expect(readAll(answer)).rejects.toThrow('hung up')
  cancellation.cancel(new Error('gone before'))
  await expect(readAll(stream())).rejects.toThrow('gone before')
  await sleep(50)
  expect(requests).toBe(0)
})

test('who cancels after the last byte changes nothing: the connection is used again', async () => {
  const { stream, sockets, cancellation } = await open((socket) => socket.write(middle + end))
  expect(await readAll(stream())).toEqual(['first'])
  cancellation.cancel(new Error('hung up'))
  expect(await readAll(stream(new Cancellation()))).toEqual(['first'])
  expect(sockets).toHaveLength(1)
})

test.each([
  ['before the head', '', []],
  ['in the middle of the head', head.slice(0, 30), []],
  ['after the head', head, []],
  ['in the middle', middle, ['first']],
  ['in the middle of a chunk', `${head}5\r\nfir`, ['fir']],
])('an origin that closes %s fails the answer, after what it sent', async (_, sent, expected) => {
  const { stream, cancellation } = await open((socket, request) => {
    if (request === 1) socket.end(sent)
    else socket.write(middle + end)
  })
  const answer = stream()
  const taken: string[] = []
  const reading = (async () => {
    await answer.head()
    for (;;) {
      const bytes = answer.take()
      if (bytes) taken.push(bytes.toString())
      else await answer.arrival()
    }
  })()
  await expect(reading).rejects.toThrow('other side closed')
  expect(taken).toEqual(expected)
  expect(cancellation.followers).toBe(0)
  expect(await readAll(stream())).toEqual(['first'])
})

test('informational answers are passed over, and trailers do no harm', async () => {
  const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'
  const trailers = '0\r\nx-checksum: 1\r\n\r\n'
  const { stream, sockets } = await open((socket) => socket.write(hints + middle + trailers))
  for (let call = 0; call < 2; call++) {
    const answer = stream()
    expect(await readAll(answer)).toEqual(['first'])
    expect([answer.status, answer.headers['link']]).toEqual([200, undefined])
  }
  expect(sockets).toHaveLength(1)
})

test('an origin that changes the protocol fails the request', async () => {
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n'
  const { stream, sockets } = await open((socket, request) =>
    socket.write(request === 1 ? upgrade : middle + end),
  )
  await expect(readAll(stream())).rejects.toThrow('bad upgrade')
  await expectClosed(sockets[0])
  expect(await readAll(stream())).toEqual(['first'])
})

test('a connection is used again when the rest of its answer was discarded', async () => {
  const { stream, sockets } = await open(async (socket) => {
    socket.write(middle)
    await sleep(50)
    socket.write(chunk('rest') + end)
  })
  for (let call = 0; call < 3; call++) {
    const cancellation = new Cancellation()
    const answer = stream(cancellation)
    await answer.head()
    answer.discard({ maxBytes: 100, maxMs: 1000 })
    expect(cancellation.followers).toBe(0)
    cancellation.cancel(new Error('hung up'))
    await sleep(120)
  }
  expect(sockets).toHaveLength(1)
})

test.each([
  ['is too long', chunk('x'.repeat(500))],
  ['never ends', ''],
])('a connection is closed when the rest of its answer %s', async (_, rest) => {
  const { stream, sockets } = await open((socket) => {
    socket.write(middle)
    setTimeout(() => socket.write(rest), 20)
  })
  const answer = stream()
  await answer.head()
  answer.discard({ maxBytes: 100, maxMs: 200 })
  await expectClosed(sockets[0])
})

test('an answer that takes too long in all fails, although it keeps coming', async () => {
  const { stream, sockets } = await open(
    (socket) => {
      socket.write(head)
      const timer = setInterval(() => socket.write(chunk('more')), 20)
      socket.on('close', () => clearInterval(timer))
    },
    { timeoutMs: 300 },
  )
  const startedAt = performance.now()
  await expect(readAll(stream())).rejects.toThrow('took too long')
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(300)
  await expectClosed(sockets[0])
})

test('a request for which there is no connection is refused at once, until one is free', async () => {
  const held: Socket[] = []
  const { stream } = await open((socket) => held.push(socket), { connections: 2 })
  const answers = [stream(), stream()].map(readAll)
  await expect(readAll(stream())).rejects.toThrow(PoolFull)
  await vi.waitFor(() => expect(held).toHaveLength(2))
  held[0]?.write(middle + end)
  expect(await Promise.race(answers)).toEqual(['first'])
  const third = readAll(stream())
  await vi.waitFor(() => expect(held).toHaveLength(3))
  for (const socket of held.slice(1)) socket.write(middle + end)
  expect(await Promise.all([...answers, third])).toEqual([['first'], ['first'], ['first']])
})

test('an origin that cannot be reached fails the request, and its place is free again', async () => {
  const { pools, target, cancellation } = await open(() => undefined)
  const nobody = { ...target, origin: 'http://127.0.0.1:1' }
  const request = {
    method: 'POST',
    path: '/',
    headers: {},
    body: '{}',
    cancellation,
    timeoutMs: 1000,
    createTimeout: () => new Error('took too long'),
  } as const
  for (let call = 0; call < 3; call++) {
    await expect(pools.collect(nobody, request, 10)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  }
  const broken = { ...request, headers: { 'x-broken': 'a\nb' } }
  await expect(pools.collect(target, broken, 10)).rejects.toThrow('invalid x-broken header')
  expect(cancellation.followers).toBe(0)
})

test('a whole answer is collected, from one chunk or many', async () => {
  const { collect, cancellation } = await open(async (socket, request) => {
    if (request === 1) socket.write(middle + end)
    else {
      for (const part of [head, chunk('one '), chunk('two'), end]) {
        socket.write(part)
        await sleep(20)
      }
    }
  })
  const first = await collect()
  expect([first.status, first.body.toString(), first.isComplete]).toEqual([200, 'first', true])
  expect((await collect()).body.toString()).toBe('one two')
  expect(cancellation.followers).toBe(0)
})

test('an answer that is too large is collected up to the limit, and its connection closes', async () => {
  const { collect, sockets } = await open((socket) =>
    socket.write(head + chunk('0123456789') + chunk('0123456789')),
  )
  const { body, isComplete } = await collect(15)
  expect([body.toString(), isComplete]).toEqual(['012345678901234', false])
  await expectClosed(sockets[0])
})

test('an answer that fails, is cancelled or takes too long is not collected', async () => {
  const { collect, cancellation } = await open(
    (socket, request) => {
      if (request === 1) socket.end(middle)
      else socket.write(middle)
    },
    { timeoutMs: 200 },
  )
  await expect(collect()).rejects.toThrow('other side closed')
  await expect(collect()).rejects.toThrow('took too long')
  const collecting = collect()
  await sleep(50)
  cancellation.cancel(new Error('hung up'))
  await expect(collecting).rejects.toThrow('hung up')
})

test('a pool that is closed because its origin was removed is opened again where it is still used', async () => {
  const { pools, target, stream } = await open((socket) => socket.write(middle + end))
  expect(await readAll(stream())).toEqual(['first'])
  pools.keepOnly([{ ...target, origin: 'http://127.0.0.1:1' }])
  expect(await readAll(stream())).toEqual(['first'])
  pools.keepOnly([{ ...target }])
  expect(await readAll(stream())).toEqual(['first'])
})
