import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { answerCompletion } from './completion.ts'
import type { Engine } from './engine.ts'
import { createQueue } from './queue.ts'
import { BadRequest, parseBody, promptFrom, type Body } from './request.ts'

const bodyMaxBytes = 8 * 1024 * 1024
const waitingMax = 64

/** Serves the engine with the chat protocol and the counting endpoints of llama.cpp. */
export async function serveEngine(engine: Engine, port: number) {
  const queue = createQueue(waitingMax)
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => refuse(response, error))
  })

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const path = (request.url ?? '').split('?', 1)[0]
    const route = `${request.method} ${path}`
    if (route === 'GET /v1/models') return send(response, 200, listModels(engine))
    const isChat = route === 'POST /v1/chat/completions'
    if (!isChat && route !== 'POST /tokenize' && route !== 'POST /apply-template') {
      return fail(response, 404, 'There is nothing at this path.')
    }
    const body = parseBody(await readBody(request))
    if (route === 'POST /tokenize') return send(response, 200, tokenize(engine, body))
    if (!isChat) return send(response, 200, { prompt: engine.fit(promptFrom(body)) })
    if (queue.isFull()) return fail(response, 503, 'Too many requests are waiting.')
    const disconnected = new AbortController()
    response.once('close', () => disconnected.abort())
    const { signal } = disconnected
    await queue.run(() => answerCompletion({ engine, body, response, signal }))
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve)
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bodyMaxBytes) throw new BadRequest('The body is too large.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function listModels(engine: Engine): Body {
  const { contextTokens, vocabulary } = engine.describe()
  const meta = { n_ctx_train: contextTokens, n_vocab: vocabulary }
  const model = { id: 'stories260K', object: 'model', created: 0, owned_by: 'llamacpp', meta }
  return { object: 'list', data: [model] }
}

function tokenize(engine: Engine, body: Body): Body {
  const { content, add_special, parse_special, with_pieces } = body
  if (typeof content !== 'string') throw new BadRequest('The request needs a string as content.')
  const special = { addSpecial: add_special === true, parseSpecial: parse_special !== false }
  const tokens = engine.tokenize(content, special)
  if (with_pieces !== true) return { tokens }
  return { tokens: tokens.map((id) => ({ id, piece: engine.textOf(id) })) }
}

function send(response: ServerResponse, status: number, value: Body) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

function fail(response: ServerResponse, status: number, message: string) {
  const type = status < 500 ? 'invalid_request_error' : 'unavailable_error'
  send(response, status, { error: { message, type, param: null, code: null } })
}

function refuse(response: ServerResponse, error: unknown) {
  if (response.headersSent || response.destroyed) return response.destroy()
  if (error instanceof BadRequest) return fail(response, 400, error.message)
  console.error(error)
  return fail(response, 500, 'The engine failed.')
}
