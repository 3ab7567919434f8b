import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'

import { expect, test } from 'vitest'

import { bodyOf, scripted } from './raw-client.ts'
import { createResponseWriter } from './response-writer.ts'
import { startScriptedUpstream } from './server.ts'

test('a pause ends when the client disconnects, and nothing is written after that', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse]
  const writer = createResponseWriter(response)
  const pauseMs = 20_000
  const startedAt = performance.now()
  const waited = writer.pause(pauseMs)
  expect(writer.isClosed()).toBe(false)
  client.destroy()
  await waited
  expect(performance.now() - startedAt).toBeLessThan(pauseMs)
  expect(writer.isClosed()).toBe(true)
  await writer.write('x'.repeat(1_000_000))
  await writer.pause(pauseMs)
  expect(performance.now() - startedAt).toBeLessThan(pauseMs)
  server.close()
})

test('with splitBytes the answer also arrives in parts on the socket', async () => {
  const upstream = await startScriptedUpstream()
  const socket = connect(Number(new URL(upstream.url).port), '127.0.0.1')
  const count = async (splitBytes: object) => {
    const script = scripted({ text: 'a b c d e f g h', ...splitBytes })
    const body = JSON.stringify(bodyOf({ dialect: 'chat', stream: true }, script))
    let [parts, wire] = [0, '']
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    while (!wire.endsWith('0\r\n\r\n')) {
      const [part] = (await once(socket, 'data')) as [Buffer]
      wire += part.toString('latin1')
      parts++
    }
    return parts
  }
  expect(await count({ splitBytes: 20 })).toBeGreaterThan(20)
  expect(await count({})).toBeLessThan(20)
  socket.destroy()
  await upstream.stop()
})
