import { expect } from 'vitest'

import { type Answer, eventsOf, type Format } from './call.ts'

// How each dialect reports a failed call, before its answer has begun and in the middle of it.

const object = (members: object) => expect.objectContaining(members) as object

type Refusal = { status: number; code: string; messagesType: string }

/** A failure before the first byte is a plain JSON error of the dialect, even if a stream was requested. */
export function expectRefusal(answer: Answer, format: Format, refusal: Refusal) {
  const { status, code, messagesType } = refusal
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
  expect(answer.isBroken).toBe(false)
  const message = expect.stringMatching(/\.$/) as string
  const openAi = { error: object({ message, code, type: expect.any(String) as string }) }
  const bodies = {
    messages: {
      type: 'error',
      error: { type: messagesType, message, code },
      request_id: answer.headers['x-request-id'],
    },
    chat: openAi,
    responses: status === 429 ? openAi : { error: message, code },
  }
  expect(JSON.parse(answer.text)).toEqual(bodies[format])
  // Only Messages has 529; the other dialects report overload as 503.
  expect(answer.status).toBe(status === 529 && format !== 'messages' ? 503 : status)
}

/** A stream that fails midway ends with an error event, and no event marks it as complete. */
export function expectBrokenStream(answer: Answer, format: Format) {
  expect(answer.status).toBe(200)
  expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  expect(answer.isBroken, 'ended without a last chunk').toBe(false)
  const events = eventsOf(answer.text)
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
  expect(answer.text).not.toMatch(/message_stop|\[DONE\]|response\.completed|"finish_reason":"/)
}
