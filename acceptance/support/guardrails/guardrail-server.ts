import { createHmac, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

import { afterAll } from 'vitest'

type Text = { index: number; role: string; text: string; new_from: number }
export type Question = {
  direction: 'request' | 'response'
  organization_id: string
  texts: Text[]
  is_test?: boolean
}

/** A status without an answer, the body of an answer, or none at all. */
export type Fault = number | 'hangs' | 'hangs up' | { body: (question: Question) => string }

/** It blocks the word `forbidden`, and replaces numbers such as 555-1234 by a hash. */
function decide({ texts }: Question): object {
  if (texts.some(({ text }) => text.includes('forbidden')))
    return { action: 'block', code: 'word', reason: 'A word is not allowed.' }
  const spans = texts.flatMap(({ index, text }) =>
    Array.from(text.matchAll(/\d{3}-\d{4}/g), ({ 0: found, index: place }) => {
      // Offsets count code points.
      const start = Array.from(text.slice(0, place)).length
      return { index, start, end: start + found.length, replacement: '#' }
    }),
  )
  return spans.length > 0 ? { action: 'rewrite', code: 'number', spans } : { action: 'allow' }
}

/** A guardrail as a house may run it, which checks signatures and can be made to fail. */
export async function startGuardrail() {
  const secret = `whsec_${randomBytes(24).toString('base64')}`
  const questions: Question[] = []
  let fault: { way: Fault; direction: Question['direction'] } | undefined
  let wrongSignatures = 0

  function isSigned({ headers }: IncomingMessage, body: Buffer): boolean {
    const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': given } = headers
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const signed = createHmac('sha256', key)
      .update(`${String(id)}.${String(time)}.`)
      .update(body)
    return given === `v1,${signed.digest('base64')}`
  }

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const body = await buffer(request)
    if (!isSigned(request, body)) {
      wrongSignatures++
      return response.writeHead(401).end()
    }
    const question = JSON.parse(body.toString()) as Question
    questions.push(question)
    const way = question.direction === fault?.direction ? fault.way : undefined
    if (way === 'hangs') return undefined
    if (way === 'hangs up') return response.destroy()
    if (typeof way === 'number') return response.writeHead(way).end('{"action":"allow"}')
    return response.end(way ? way.body(question) : JSON.stringify(decide(question)))
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}/decide`,
    secret,
    questions,
    get wrongSignatures() {
      return wrongSignatures
    },
    /** Fails at questions about this direction from now on. */
    fail(way: Fault, direction: Question['direction']) {
      fault = { way, direction }
    },
    recover() {
      fault = undefined
    },
  }
}
