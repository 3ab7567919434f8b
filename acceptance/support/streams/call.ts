import { type ClientRequest, type IncomingMessage, request } from 'node:http'

import { hiddenScript, type Script } from '@gatehouse/tools/scripted-upstream/script'

// Inference calls over plain HTTP, in any format. The prompt contains a script for the scripted upstream.

export const formats = ['messages', 'chat', 'responses'] as const
export type Format = (typeof formats)[number]

export const pathOf = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
} as const satisfies Record<Format, string>

/** A prompt that tells the scripted upstream what to do. */
export const promptFor = (script: Script) => `Go.\n#script ${JSON.stringify(script)}`

/** The same, where nobody but the upstream can read what the answer will say: escapes of JSON are read by rules and scorers. */
export const hiddenPromptFor = (script: Script) => `Go.\n${hiddenScript(script)}`

export type RequestOptions = {
  format: Format
  model: string
  script?: Script
  isStreamed?: boolean
  /** Further members of the body. */
  body?: Record<string, unknown>
}

export function bodyOf({
  format,
  model,
  script = {},
  isStreamed = true,
  body = {},
}: RequestOptions) {
  const content = promptFor(script)
  const stream = isStreamed && { stream: true }
  if (format === 'responses') return { model, input: content, ...stream, ...body }
  const messages = [{ role: 'user', content }]
  return { model, messages, ...(format === 'messages' && { max_tokens: 500 }), ...stream, ...body }
}

/**
 * Members of a plain call that may write so much that its upstream is asked for a stream, which is folded: it has the
 * deadlines of a stream and ends when its caller hangs up. Shorter plain calls ask for a plain answer.
 */
export const foldedCall: Record<Format, Record<string, number>> = {
  messages: { max_tokens: 9000 },
  chat: { max_completion_tokens: 9000 },
  responses: { max_output_tokens: 9000 },
}

type Chunk = { atMs: number; text: string }

export type Answer = {
  status: number
  headers: Record<string, string>
  text: string
  chunks: Chunk[]
  /** The connection broke before the answer was complete. */
  isBroken: boolean
  tookMs: number
}

export type Target = { baseUrl: string; credential: string }

type Raw = { path: string; headers?: Record<string, string>; payload: string | Buffer }

/** Starts a call. `responseStarted` resolves with the response headers, `answer` when the answer has ended. */
export function begin(target: Target, options: RequestOptions) {
  const payload = JSON.stringify(bodyOf(options))
  return beginRaw(target, { path: pathOf[options.format], payload })
}

/** Like `begin`, with any path, headers and body. */
export function beginRaw({ baseUrl, credential }: Target, { path, headers, payload }: Raw) {
  const startedAt = performance.now()
  const call = request(new URL(path, baseUrl), {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${credential}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(payload),
      ...headers,
    },
  })
  const responseStarted = new Promise<IncomingMessage>((resolve, reject) => {
    call.once('response', resolve).once('error', reject)
  })
  responseStarted.catch(() => undefined)
  const chunks: Chunk[] = []
  const answer = responseStarted.then((message) => readAnswer(message, chunks, startedAt))
  answer.catch(() => undefined)
  call.end(payload)
  return {
    answer,
    responseStarted,
    chunks,
    hangUp: () => void call.destroy(),
    call: call as ClientRequest,
  }
}
export type RunningCall = ReturnType<typeof begin>

function readAnswer(message: IncomingMessage, chunks: Chunk[], startedAt: number): Promise<Answer> {
  return new Promise((resolve) => {
    message.setEncoding('utf8')
    message.on('data', (text: string) => chunks.push({ atMs: performance.now() - startedAt, text }))
    message.on('error', () => undefined)
    message.once('close', () =>
      resolve({
        status: message.statusCode ?? 0,
        headers: message.headers as Record<string, string>,
        text: chunks.map(({ text }) => text).join(''),
        chunks,
        isBroken: !message.complete,
        tookMs: performance.now() - startedAt,
      }),
    )
  })
}

/** Sends a call and waits for the whole answer. */
export const ask = (target: Target, options: RequestOptions): Promise<Answer> =>
  begin(target, options).answer

export type StreamEvent = { event: string; data: Record<string, unknown> | '[DONE]' }

/** The events of a stream; comments are events without data. */
export function eventsOf(text: string): StreamEvent[] {
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
