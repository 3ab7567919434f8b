import { expect, test } from 'vitest'

import { errorText } from '#http/error-dialect.ts'
import type { ApiError } from '#platform/api-error.ts'

import { messageCallerFormat } from './message-format.ts'

const request = { model: 'any', messages: [{ role: 'user', content: 'Hi' }] }

function refusalOf(thread: unknown): ApiError | undefined {
  try {
    messageCallerFormat.readTurn({ ...request, thread })
    return undefined
  } catch (error) {
    return error as ApiError
  }
}

test('a conversation kept by the provider is refused in the words that its clients recover from', () => {
  const refusal = refusalOf({ type: 'create' })
  expect(refusal).toMatchObject({
    code: 'unsupported_parameter',
    status: 400,
    param: 'body.thread',
  })
  for (const dialect of ['messages', 'count_tokens'] as const) {
    const body = errorText(refusal!, 'req_1', { dialect, docsUrl: undefined })
    expect(JSON.parse(body)).toEqual({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: refusal?.message,
        code: 'unsupported_parameter',
        details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
      },
      request_id: 'req_1',
    })
  }
})

test.each([undefined, null])('%s is no thread', (thread) => {
  expect(refusalOf(thread)).toBeUndefined()
})
