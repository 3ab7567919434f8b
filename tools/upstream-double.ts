import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const answer = 'Hello from the upstream double.'
const bodyMaxBytes = 1024 * 1024

/** Stands in for a model provider: speaks both vendors' protocols and always says the same. */
export async function startUpstreamDouble() {
  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function respond(request: IncomingMessage, response: ServerResponse) {
  const body = await readBody(request)
  if (request.method === 'POST' && request.url === '/v1/messages') return message(body, response)
  if (request.method === 'POST' && request.url === '/v1/chat/completions') {
    return chatCompletion(body, response)
  }
  return sendJson(response, 404, { error: { message: 'The double knows two paths only.' } })
}

type Body = { model?: string; stream?: boolean }

async function readBody(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bodyMaxBytes) throw new Error('too large')
    chunks.push(chunk)
  }
  return bytes === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString()) as Body)
}

function sendJson(response: ServerResponse, status: number, value: object) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

function message({ model = 'double', stream }: Body, response: ServerResponse) {
  const usage = { input_tokens: 1, output_tokens: 7 }
  const start = { id: 'msg_double', type: 'message', role: 'assistant', model, stop_sequence: null }
  const content = { type: 'text', text: answer }
  if (!stream) {
    return sendJson(response, 200, { ...start, content: [content], stop_reason: 'end_turn', usage })
  }
  const frames: [string, object][] = [
    ['message_start', { message: { ...start, content: [], stop_reason: null, usage } }],
    ['content_block_start', { index: 0, content_block: { type: 'text', text: '' } }],
    ['content_block_delta', { index: 0, delta: { type: 'text_delta', text: answer } }],
    ['content_block_stop', { index: 0 }],
    ['message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage }],
    ['message_stop', {}],
  ]
  const text = frames.map(
    ([type, data]) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`,
  )
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text.join(''))
}

function chatCompletion({ model = 'double', stream }: Body, response: ServerResponse) {
  const base = { id: 'chatcmpl-double', created: 0, model }
  const usage = { prompt_tokens: 1, completion_tokens: 7, total_tokens: 8 }
  const choice = { index: 0, finish_reason: 'stop', logprobs: null }
  if (!stream) {
    const reply = { role: 'assistant', content: answer, refusal: null }
    const choices = [{ ...choice, message: reply }]
    return sendJson(response, 200, { ...base, object: 'chat.completion', choices, usage })
  }
  const deltas = [{ role: 'assistant', content: '' }, { content: answer }, {}]
  const frames = deltas.map((delta, index) => {
    const finish_reason = index === deltas.length - 1 ? 'stop' : null
    const choices = [{ ...choice, delta, finish_reason }]
    return `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices })}\n\n`
  })
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(`${frames.join('')}data: [DONE]\n\n`)
}
