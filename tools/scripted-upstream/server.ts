import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import type { Dialect } from './ask.ts'
import { answerCount, answerModelCall, fail, type Call, type OnAnswered } from './call.ts'
import { applyTemplate, describeModel, isModel, listModels, tokenize } from './counting.ts'
import { deliverPlain } from './deliver.ts'
import { isRecord, type Json } from './json.ts'
import { createResponseWriter } from './response-writer.ts'
import { BadScript, checkError } from './script.ts'
import { createState, type Received, type State } from './state.ts'

const bodyMaxBytes = 64 * 1024 * 1024

const dialects: Record<string, Dialect> = {
  '/v1/messages': 'messages',
  '/v1/chat/completions': 'chat',
  '/v1/responses': 'responses',
}

/** `onAnswered` is called for every answer once its response has closed. */
type Options = { port?: number; onAnswered?: OnAnswered }

/** A test double of a model provider: speaks the vendors' protocols and does what a request's script says. */
export async function startScriptedUpstream({ port = 0, onAnswered }: Options = {}) {
  const state = createState()
  const server = createServer((request, response) => {
    serve({ state, onAnswered }, request, response).catch(() => response.destroy())
  })
  // A gateway may keep a connection idle between two tests for longer than Node's default of five seconds.
  server.keepAliveTimeout = 600_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve)
  })
  const address = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

type Deps = { state: State; onAnswered: OnAnswered | undefined }

async function serve(deps: Deps, request: IncomingMessage, response: ServerResponse) {
  const { state, onAnswered } = deps
  const { method = '', url: path = '', headers } = request
  const startedAt = performance.now()
  const body = await readBody(request)
  const received = { method, path, headers, body }
  if (path.startsWith('/control/')) {
    control(state, received, response)
    return
  }
  const writer = createResponseWriter(response)
  const number = state.begin(received)
  response.once('close', () => {
    const isCut = !response.writableFinished && !writer.isBroken
    const afterMs = Math.round(performance.now() - startedAt)
    state.end(isCut ? { afterMs, pieces: writer.pieces } : undefined)
  })
  await route({ received, response, writer, state, number, onAnswered })
}

/** Uses events instead of an iterator, because this is the hot path of a benchmark. */
function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > bodyMaxBytes) reject(new Error('The body is too large.'))
      else chunks.push(chunk)
    })
    request.once('end', () => {
      const [only] = chunks
      resolve(chunks.length === 1 && only ? only.toString() : Buffer.concat(chunks).toString())
    })
    request.once('error', reject)
    request.once('close', () => reject(new Error('The body did not arrive.')))
  })
}

async function route(call: Call) {
  const { method, path: target, body: text } = call.received
  const path = target.split('?', 1)[0] ?? ''
  if (method === 'GET' || method === 'HEAD') return answerRead(call, path)
  const dialect = dialects[path] ?? (path.startsWith('/v1/messages/') ? 'messages' : 'chat')
  const body = parse(text)
  if (method !== 'POST' || !isKnown(path)) return unknownPath(call, path)
  if (!body) {
    return fail(call, dialect, { status: 400, message: 'The body is not a JSON object.' }, {})
  }
  if (dialects[path]) return answerModelCall(call, dialect, body)
  if (path === '/v1/messages/count_tokens') return answerCount(call, body)
  const mode = call.state.mode()
  if (mode) return fail(call, dialect, mode, {})
  return sendJson(call, path === '/tokenize' ? tokenize(body) : applyTemplate(body))
}

const further = ['/v1/messages/count_tokens', '/tokenize', '/apply-template']
const isKnown = (path: string) => dialects[path] !== undefined || further.includes(path)

async function answerRead(call: Call, path: string) {
  const model = path.startsWith('/v1/models/') ? decodeURIComponent(path.slice(11)) : ''
  if (path === '/v1/models') return sendJson(call, listModels(call.received.headers))
  if (isModel(model)) return sendJson(call, describeModel(model))
  if (path === '/') return sendJson(call, {})
  return unknownPath(call, path)
}

function unknownPath(call: Call, path: string) {
  const dialect = path.startsWith('/v1/messages') ? 'messages' : 'chat'
  return fail(call, dialect, { status: 404, message: 'There is nothing at this path.' }, {})
}

function sendJson(call: Call, value: Json) {
  const head = { status: 200, headers: {} }
  return deliverPlain({ ...call, script: {} }, head, JSON.stringify(value))
}

function parse(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

function control(state: State, { method, path, body }: Received, response: ServerResponse) {
  const send = (status: number, value: Json) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  try {
    if (method === 'GET' && path === '/control/state') return send(200, state.report())
    if (method === 'POST' && path === '/control/reset') state.reset()
    else if (method === 'POST' && path === '/control/mode') state.setMode(checkError(parse(body)))
    else return send(404, { error: 'There is no such control.' })
    return send(200, { ok: true })
  } catch (error) {
    if (!(error instanceof BadScript)) throw error
    return send(400, { error: error.message })
  }
}
