import { type ClientRequest, type IncomingMessage, request } from 'node:http'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'

// Inference calls over plain HTTP, in any format, told by a script for the upstream.

export const formats = ['messages', 'chat', 'responses'] as const
export type Format = (typeof formats)[number]

export const pathOf = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
} as const satisfies Record<Format, string>

/** A prompt that tells the scripted upstream what to do. */
export const promptFor = (script: Script) => `Go.\n#script ${JSON.stringify(script)}`

export type Wish = {
  format: Format
  model: string
  script?: Script
  isStreamed?: boolean
  /** Further members of the body. */
  body?: Record<string, unknown>
}

export function bodyOf({ format, model, script = {}, isStreamed = true, body = {} }: Wish) {
  const content = promptFor(script)
  const stream = isStreamed && { stream: true }
  if (format === 'responses') return { model, input: content, ...stream, ...body }
  const messages = [{ role: 'user', content }]
  return { model, messages, ...(format === 'messages' && { max_tokens: 500 }), ...stream, ...body }
}

type Chunk = { atMs: number; text: string }

export type Heard = {
  status: number
  headers: Record<string, string>
  text: string
  chunks: Chunk[]
  /** The connection broke before the answer was whole. */
  isBroken: boolean
  tookMs: number
}

export type Target = { baseUrl: string; credential: string }

type Raw = { path: string; headers?: Record<string, string>; payload: string | Buffer }

/** A call that has begun; `heard` is its whole answer, however it ends. */
export function begin(target: Target, wish: Wish) {
  const payload = JSON.stringify(bodyOf(wish))
  return beginRaw(target, { path: pathOf[wish.format], payload })
}

/** The same with a body of one's own. */
export function beginRaw({ baseUrl, credential }: Target, { path, headers, payload }: Raw) {
  const startedAt = performance.now()
  const call = request(new URL(path, baseUrl), {
    ...{ method: 'POST', agent: false },
    headers: {
      authorization: `Bearer ${credential}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(payload),
      ...headers,
    },
  })
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    call.once('response', resolve).once('error', reject)
  })
  answered.catch(() => undefined)
  const chunks: Chunk[] = []
  const heard = answered.then((answer) => listen(answer, chunks, startedAt))
  heard.catch(() => undefined)
  call.end(payload)
  return { heard, answered, chunks, hangUp: () => void call.destroy(), call: call as ClientRequest }
}
export type Begun = ReturnType<typeof begin>

function listen(answer: IncomingMessage, chunks: Chunk[], startedAt: number): Promise<Heard> {
  return new Promise((resolve) => {
    answer.setEncoding('utf8')
    answer.on('data', (text: string) => chunks.push({ atMs: performance.now() - startedAt, text }))
    answer.on('error', () => undefined)
    answer.once('close', () =>
      resolve({
        status: answer.statusCode ?? 0,
        headers: answer.headers as Record<string, string>,
        text: chunks.map(({ text }) => text).join(''),
        ...{ chunks, isBroken: !answer.complete, tookMs: performance.now() - startedAt },
      }),
    )
  })
}

/** Calls and waits for the end. */
export const ask = (target: Target, wish: Wish): Promise<Heard> => begin(target, wish).heard

export type SeenEvent = { event: string; data: Record<string, unknown> | '[DONE]' }

/** The events of a stream; comments are events without data. */
export function eventsOf(text: string): SeenEvent[] {
  return text
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => {
      const valueOf = (name: string) => frame.match(new RegExp(`^${name}: ?(.*)$`, 'm'))?.[1] ?? ''
      const data = valueOf('data')
      return {
        event: valueOf('event'),
        data: data === '[DONE]' ? data : (JSON.parse(data || '{}') as Record<string, unknown>),
      }
    })
}
