import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'

import { scoresMarkedIn } from '@gatehouse/tools/testing/marked-scores'

/** How the server behaves. A number is a status that it answers with. */
type Behaviour =
  | 'answers'
  | 'hangs'
  | 'hangs up'
  | 'hangs up once'
  | 'stops within its answer'
  | 'answers half of its JSON'
  | 'answers for other texts'
  | 'answers without end'
  | 'fails at images'
  | number

type Call = { path: string; authorization: string | undefined; body: { input?: unknown[] } }

/**
 * A server with the API of a moderation endpoint. Texts say their scores themselves, as in `[[cat:hate=0.9]]`. `reply` takes the
 * place of its own answers, for other APIs; `become` changes its behaviour.
 */
export async function createScorerDouble(reply: (call: Call) => unknown = moderate) {
  let behaviour: Behaviour = 'answers'
  let delayMs = 0
  const calls: Call[] = []

  async function serve(request: IncomingMessage, response: ServerResponse) {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const { authorization } = request.headers
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Call['body']
    const call = { path: request.url ?? '', authorization, body }
    calls.push(call)
    if (delayMs > 0) await setTimeout(delayMs)
    const asked = behaviour === 'fails at images' ? (hasImage(body) ? 500 : 'answers') : behaviour
    respond(response, asked, () => reply(call))
    if (behaviour === 'hangs up once') behaviour = 'answers'
  }
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    become(next: Behaviour) {
      behaviour = next
    },
    /** Makes the server slow. */
    answerAfter(ms: number) {
      delayMs = ms
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const hasImage = ({ input = [] }: Call['body']) => input.some((each) => typeof each !== 'string')

function respond(
  response: ServerResponse,
  behaviour: Exclude<Behaviour, 'fails at images'>,
  reply: () => unknown,
) {
  response.setHeader('content-type', 'application/json')
  if (typeof behaviour === 'number') {
    response.writeHead(behaviour, { location: '/elsewhere' }).end('{"error":{"message":"no"}}')
    return
  }
  const text = () => JSON.stringify(reply())
  switch (behaviour) {
    case 'hangs':
      return
    case 'hangs up':
    case 'hangs up once':
      response.destroy()
      return
    case 'stops within its answer':
      response.writeHead(200, { 'content-length': text().length }).write(text().slice(0, 20))
      void setTimeout(20).then(() => response.destroy())
      return
    case 'answers half of its JSON':
      response.end(text().slice(0, -20))
      return
    case 'answers for other texts':
      response.end(JSON.stringify({ id: 'modr-1', model: 'm', results: [] }))
      return
    case 'answers without end':
      response.end(`"${'x'.repeat(300 * 1024)}"`)
      return
    case 'answers':
      response.end(text())
  }
}

function moderate({ body }: Call) {
  const { input = [] } = body
  const hasParts = hasImage(body)
  const texts = hasParts ? [JSON.stringify(input)] : input.map(String)
  const results = texts.map((text) => toResult(text, hasParts))
  return { id: 'modr-1', model: 'omni-moderation-latest', results }
}

/** What the endpoint looks for in images. */
const seenInImages = /^(?:self-harm|sexual$|violence)/

function toResult(text: string, hasImage: boolean) {
  const typesOf = (name: string) =>
    hasImage && seenInImages.test(name) ? ['text', 'image'] : ['text']
  const scores = Object.entries(scoresMarkedIn(text))
  return {
    flagged: scores.some(([, score]) => score >= 0.5),
    categories: Object.fromEntries(scores.map(([name, score]) => [name, score >= 0.5])),
    category_scores: Object.fromEntries(scores),
    category_applied_input_types: Object.fromEntries(scores.map(([name]) => [name, typesOf(name)])),
  }
}
