import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'

/** How the server behaves. A number is a status that it answers with; a text is what it answers. */
type Behaviour =
  | 'answers'
  | 'hangs'
  | 'hangs up'
  | 'hangs up once'
  | 'stops'
  | number
  | { raw: string }

export type AskedQuestion = {
  id: string
  direction: 'request' | 'response'
  organization_id: string
  project_id: string
  request_id: string
  model: string
  is_last: boolean
  texts: { index: number; role: string; text: string; new_from: number }[]
}

/** It blocks this word, and rewrites numbers such as 555-1234 to a hash. */
export const blockedWord = 'forbidden'
const numbers = /\d{3}-\d{4}/g

export const guardrailSecret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

/**
 * A guardrail as a house may have it: it checks signatures, blocks a word and rewrites phone numbers. `reply`
 * takes the place of its decisions; `become` changes its behaviour.
 */
export async function createGuardrailDouble(given: (asked: AskedQuestion) => unknown = decide) {
  let reply = given
  let behaviour: Behaviour = 'answers'
  let delayMs = 0
  const questions: AskedQuestion[] = []
  const signatures: ('right' | 'wrong' | 'none')[] = []
  /** Questions whose connection was closed before they had an answer. */
  let cancelled = 0

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('close', () => {
      if (!response.writableEnded) cancelled++
    })
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const asked = JSON.parse(body) as AskedQuestion
      questions.push(asked)
      signatures.push(checkSignature(request.headers, body))
      void setTimeout(delayMs).then(() => {
        respond(response, behaviour, () => JSON.stringify(reply(asked)))
        if (behaviour === 'hangs up once') behaviour = 'answers'
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/decide?for=tests`,
    questions,
    signatures,
    get cancelled() {
      return cancelled
    },
    become(next: Behaviour) {
      behaviour = next
    },
    reply(next: (asked: AskedQuestion) => unknown) {
      reply = next
    },
    answerAfter(ms: number) {
      delayMs = ms
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** As Standard Webhooks says, and written anew: the service must not check itself by its own function. */
function checkSignature(headers: IncomingHttpHeaders, body: string) {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': given } = headers
  if (given === undefined) return 'none'
  const key = Buffer.from(guardrailSecret.slice('whsec_'.length), 'base64')
  const signed = createHmac('sha256', key).update(`${String(id)}.${String(time)}.${body}`)
  return given === `v1,${signed.digest('base64')}` ? 'right' : 'wrong'
}

function respond(response: ServerResponse, behaviour: Behaviour, text: () => string) {
  if (typeof behaviour === 'number') {
    response.writeHead(behaviour, { location: '/elsewhere' }).end('{"action":"allow"}')
    return
  }
  if (typeof behaviour === 'object') {
    response.end(behaviour.raw)
    return
  }
  switch (behaviour) {
    case 'hangs':
      return
    case 'hangs up':
    case 'hangs up once':
      response.destroy()
      return
    case 'stops':
      response.writeHead(200, { 'content-length': 100 }).write('{"action":')
      void setTimeout(20).then(() => response.destroy())
      return
    case 'answers':
      response.writeHead(200, { 'content-type': 'application/json' }).end(text())
  }
}

/** The offsets of a guardrail count code points, as `[...text]` does. */
const lengthOf = (text: string) => Array.from(text).length

function decide({ texts }: AskedQuestion) {
  if (texts.some(({ text }) => text.includes(blockedWord)))
    return { action: 'block', code: 'word', reason: 'A word is not allowed.' }
  const spans = texts.flatMap(({ index, text }) =>
    Array.from(text.matchAll(numbers), (found) => {
      const start = lengthOf(text.slice(0, found.index))
      return { index, start, end: start + lengthOf(found[0]), replacement: '#' }
    }),
  )
  return spans.length > 0 ? { action: 'rewrite', code: 'number', spans } : { action: 'allow' }
}
