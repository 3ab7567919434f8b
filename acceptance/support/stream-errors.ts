import { expect } from 'vitest'

import { eventsOf, type Format, type Heard } from './stream-call.ts'

// How each family says that a call has failed, before its answer and in the middle of it.

const object = (members: object) => expect.objectContaining(members) as object

type Refusal = { status: number; code: string; messagesType: string }

/** A failure before the first byte: a plain JSON answer in the family's body, whatever was asked for. */
export function expectRefusal(heard: Heard, format: Format, refusal: Refusal) {
  const { status, code, messagesType } = refusal
  expect(heard.headers['content-type']).toBe('application/json; charset=utf-8')
  expect(heard.isBroken).toBe(false)
  const message = expect.stringMatching(/\.$/) as string
  const openAi = { error: object({ message, code, type: expect.any(String) as string }) }
  const bodies = {
    messages: {
      type: 'error',
      error: { type: messagesType, message, code },
      request_id: heard.headers['x-request-id'],
    },
    chat: openAi,
    responses: status === 429 ? openAi : { error: message, code },
  }
  expect(JSON.parse(heard.text)).toEqual(bodies[format])
  // Only one family knows 529 (G7.10).
  expect(heard.status).toBe(status === 529 && format !== 'messages' ? 503 : status)
}

/** An answer that began well and failed: its last event says so, and none says that it is complete. */
export function expectBrokenStream(heard: Heard, format: Format) {
  expect(heard.status).toBe(200)
  expect(heard.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  expect(heard.isBroken, 'ended without a last chunk').toBe(false)
  const events = eventsOf(heard.text)
  const last = events.at(-1)
  const lasts = {
    messages: {
      event: 'error',
      data: object({
        type: 'error',
        error: object({ type: expect.any(String), message: expect.any(String) }),
      }),
    },
    chat: { event: '', data: object({ error: object({ message: expect.any(String) }) }) },
    responses: {
      event: 'response.failed',
      data: object({
        type: 'response.failed',
        response: object({
          status: 'failed',
          error: object({ code: expect.any(String), message: expect.any(String) }),
        }),
      }),
    },
  }
  expect(last).toEqual(lasts[format])
  expect(heard.text).not.toMatch(/message_stop|\[DONE\]|response\.completed|"finish_reason":"/)
}
