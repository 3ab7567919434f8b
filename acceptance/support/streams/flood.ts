import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'

import { bodyOf, pathOf, type RequestOptions, type Target } from './call.ts'

const frame = (type: string, members: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`

const opening =
  frame('message_start', {
    message: {
      id: 'msg_flood',
      type: 'message',
      role: 'assistant',
      model: 'flood',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  }) + frame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })

const delta = { type: 'text_delta', text: 'x'.repeat(16 * 1024) }
const piece = frame('content_block_delta', { index: 0, delta })

/** An upstream that sends this many bytes as fast as it can; `seen` has the bytes sent, and when it sent the last ones. */
export async function startFlood(bytes: number) {
  const seen = { sentBytes: 0, lastSentAt: 0, closedAt: 0 }
  const flood = async (response: ServerResponse, signal: AbortSignal) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(opening)
    while (seen.sentBytes < bytes && !response.destroyed) {
      if (!response.write(piece)) await once(response, 'drain', { signal })
      seen.sentBytes += piece.length
      seen.lastSentAt = performance.now()
    }
    response.end()
  }
  const server = createServer((request, response) => {
    request.resume()
    const isOver = new AbortController()
    response.once('close', () => {
      seen.closedAt = performance.now()
      isOver.abort()
    })
    flood(response, isOver.signal).catch(() => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Sends a request and never reads the answer. */
export function beginAndNeverRead(
  { baseUrl, credential }: Target,
  options: RequestOptions,
): Socket {
  const { hostname, port } = new URL(baseUrl)
  const body = JSON.stringify(bodyOf(options))
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  socket.pause()
  socket.write(
    `POST ${pathOf[options.format]} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${credential}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  return socket
}

/** The resident memory of a process, in megabytes. */
export async function residentMegabytes(processId: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${processId}/status`, 'utf8')
  return Number(status.match(/^VmRSS:\s+(\d+) kB$/m)?.[1]) / 1024
}
