import { request } from 'node:http'

import type { Script } from './script.ts'

export type RawResponse = {
  status: number
  headers: Record<string, unknown>
  /** The chunks of the body, as the HTTP parser returned them. */
  chunks: Buffer[]
  text: string
  isBroken: boolean
  headMs: number
  firstMs: number
  totalMs: number
}

/** Sends one plain HTTP request; `hangUpAfterBytes` closes the connection in the middle of the answer. */
export function send(
  url: string,
  path: string,
  body?: unknown,
  { hangUpAfterBytes = Infinity, headers = {} } = {},
): Promise<RawResponse> {
  const startedAt = performance.now()
  const since = () => performance.now() - startedAt
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const outgoing = request(`${url}${path}`, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      const headMs = since()
      let [firstMs, bytes] = [0, 0]
      response.on('data', (chunk: Buffer) => {
        firstMs ||= since()
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes >= hangUpAfterBytes) outgoing.destroy()
      })
      response.on('error', () => undefined)
      response.once('close', () => {
        const { statusCode: status = 0, headers: received, complete } = response
        const text = Buffer.concat(chunks).toString()
        const times = { headMs, firstMs, totalMs: since() }
        resolve({ status, headers: received, chunks, text, isBroken: !complete, ...times })
      })
    })
    outgoing.once('error', (error) => (hangUpAfterBytes === Infinity ? reject(error) : undefined))
    outgoing.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
}

const paths = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
}

export const dialects = ['messages', 'chat', 'responses'] as const
export type Dialect = (typeof dialects)[number]
export type Way = { dialect: Dialect; stream: boolean }

/** Every protocol, streamed and plain. */
export const ways: Way[] = dialects.flatMap((dialect) => [
  { dialect, stream: true },
  { dialect, stream: false },
])

/** Builds a request of the protocol with this text as its only message. */
export function bodyOf({ dialect, stream }: Way, text: string, further: object = {}) {
  const common = { model: 'scripted-small', stream, ...further }
  const messages = [{ role: 'user', content: text }]
  if (dialect === 'responses') return { input: text, ...common }
  if (dialect === 'messages') return { messages, max_tokens: 4096, ...common }
  return { messages, ...(stream && { stream_options: { include_usage: true } }), ...common }
}

export const scripted = (script: Script) => `Do this.\n#script ${JSON.stringify(script)}`

export function ask(url: string, way: Way, script: Script | string, further: object = {}) {
  const text = typeof script === 'string' ? script : scripted(script)
  return send(url, paths[way.dialect], bodyOf(way, text, further))
}
