import { once } from 'node:events'
import { createServer, type IncomingMessage, request as sendRequest } from 'node:http'
import type { AddressInfo } from 'node:net'

import { afterEach, expect, test, vi } from 'vitest'

import { ClientGone } from '#platform/client-gone.ts'

import { createBodyBudget } from './body-budget.ts'
import { createPaceWatch } from './pace-watch.ts'
import { readBytes } from './read-bytes.ts'

const mb = 1024 * 1024

/** Reads the body of one request that `send` makes, over a real connection. */
async function read(
  send: (request: ReturnType<typeof sendRequest>) => void,
  { headers = {}, maxBytes = mb, totalBytes = 256 * mb } = {},
) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const request = sendRequest({ port, host: '127.0.0.1', method: 'POST', headers })
  request.on('error', () => undefined)
  send(request)
  const [message] = (await once(server, 'request')) as [IncomingMessage]
  const budget = createBodyBudget(totalBytes)
  const paceWatch = createPaceWatch()
  const reservation = budget.open('org', 1)!
  try {
    const bytes = await readBytes(message, { maxBytes, reservation, paceWatch })
    return { bytes, reserved: budget.usedBytes() }
  } finally {
    paceWatch.stop()
    request.destroy()
    server.closeAllConnections()
    server.close()
  }
}

afterEach(() => void vi.useRealTimers())

test.each([0, 1, 16_384, 16_385, 300_000])('a declared length of %i bytes', async (size) => {
  const body = Buffer.alloc(size, 'abc')
  const headers = { 'content-length': size }
  const { bytes, reserved } = await read((request) => request.end(body), { headers })
  expect(bytes).toEqual(body)
  expect(reserved).toBe(size)
})

test('chunks of one byte take a buffer of at most twice their number', async () => {
  const size = 20_000
  const { bytes, reserved } = await read((request) => {
    for (let index = 0; index < size; index++) request.write(Buffer.from([index % 256]))
    request.end()
  })
  expect(bytes).toEqual(Buffer.from(Array.from({ length: size }, (_, index) => index % 256)))
  expect(bytes.buffer.byteLength).toBeLessThanOrEqual(2 * size)
  expect(reserved).toBe(bytes.buffer.byteLength)
})

test('413: a declared length that is too large is refused before anything is read', async () => {
  const headers = { 'content-length': mb + 1 }
  await expect(read((request) => request.flushHeaders(), { headers })).rejects.toMatchObject({
    code: 'request_too_large',
  })
})

test('413: chunks that become too many are refused while they are read', async () => {
  await expect(read((request) => request.end(Buffer.alloc(mb + 1)))).rejects.toMatchObject({
    code: 'request_too_large',
  })
})

test.each([
  ['declared', { 'content-length': mb }],
  ['in chunks', {}],
])('no room for a body, %s', async (_, headers) => {
  const limits = { headers, totalBytes: 2 * mb }
  await expect(read((request) => request.end(Buffer.alloc(mb)), limits)).rejects.toMatchObject({
    code: 'overloaded',
  })
})

test('a client that disconnects ends the reading', async () => {
  const headers = { 'content-length': 1000 }
  const sent = read(
    (request) => {
      request.write('x')
      setTimeout(() => request.destroy(), 50)
    },
    { headers },
  )
  await expect(sent).rejects.toBeInstanceOf(ClientGone)
})

test('408: a body below 16 KiB a second after ten seconds', () => {
  vi.useFakeTimers()
  const paceWatch = createPaceWatch()
  const ended: string[] = []
  let received = 0
  const add = (name: string, bytes: () => number) =>
    paceWatch.add({ received: bytes, onTooSlow: () => ended.push(name) })
  add('silent', () => 0)
  const unwatch = add('finished', () => 0)
  add('steady', () => received)
  vi.advanceTimersByTime(9000)
  received = 12 * 16_384
  unwatch()
  expect(ended).toEqual([])
  vi.advanceTimersByTime(2000)
  expect(ended).toEqual(['silent'])
  vi.advanceTimersByTime(2000)
  expect(ended).toContain('steady')
  paceWatch.stop()
})
