import { expect, test } from 'vitest'

import type { ApiError } from '#platform/api-error.ts'

import { messages } from './message-protocol.ts'

const request = { model: 'any', messages: [{ role: 'user', content: 'Hi' }] }

function refusalOf(thread: unknown): ApiError | undefined {
  try {
    messages.readTurn({ ...request, thread })
    return undefined
  } catch (error) {
    return error as ApiError
  }
}

test('a conversation kept by the provider is refused in the words that its clients recover from', () => {
  const refusal = refusalOf({ type: 'create' })
  expect(refusal).toMatchObject({ code: 'unsupported_parameter', param: 'body.thread' })
  expect(refusal?.verbatim).toMatchObject({ dialect: 'messages', status: 400 })
  expect(JSON.parse(refusal?.verbatim?.body ?? '')).toMatchObject({
    type: 'error',
    error: {
      type: 'invalid_request_error',
      message: refusal?.message,
      details: { error_code: 'thread_unsupported_request' },
    },
  })
})

test.each([undefined, null])('%s is no thread', (thread) => {
  expect(refusalOf(thread)).toBeUndefined()
})
