import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { meaningOf, plainSource } from '#formats/testing/meaning-of.ts'
import type { ApiError } from '#platform/api-error.ts'

import { readPlainResponse } from './plain-response.ts'

const response = (output: unknown, members: Json = {}): Json => ({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  error: null,
  incomplete_details: null,
  model: 'theirs',
  output,
  usage: {
    input_tokens: 10,
    input_tokens_details: { cached_tokens: 3 },
    output_tokens: 7,
    output_tokens_details: { reasoning_tokens: 5 },
    total_tokens: 17,
  },
  ...members,
})
const read = (body: Json) => readPlainResponse(plainSource(body))
const message = (...content: Json[]) => ({
  id: 'msg_1',
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content,
})

test('all that a response may have is read, in its order', () => {
  const { events, reportedUsage } = read(
    response([
      {
        id: 'rs_1',
        type: 'reasoning',
        summary: [
          { type: 'summary_text', text: 'Hm.' },
          { type: 'summary_text', text: 'Yes.' },
        ],
        encrypted_content: 'c2VhbGVk',
      },
      { id: 'ws_1', type: 'web_search_call', status: 'completed' },
      message({ type: 'output_text', text: 'It is ', annotations: [] }),
      { id: 'fc_1', type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"at":1}' },
      { id: 'ct_1', type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: 'a "b"' },
    ]),
  )
  expect(meaningOf(events)).toEqual({
    id: 'resp_1',
    model: 'theirs',
    text: 'It is ',
    refusal: '',
    reasoning: 'Hm.\n\nYes.',
    opaque: [{ origin: 'responses', kind: 'encrypted', data: 'c2VhbGVk', id: 'rs_1' }],
    calls: [
      { id: 'c1', name: 'look', arguments: { at: 1 } },
      { id: 'c2', name: 'patch', arguments: { input: 'a "b"' } },
    ],
    reason: 'tool_call',
    stopSequence: null,
    usage: {
      inputTokens: 10,
      outputTokens: 7,
      cachedInputTokens: 3,
      cacheWriteTokens: 0,
      reasoningTokens: 5,
    },
  })
  expect(reportedUsage).toMatchObject({ total_tokens: 17 })
})

const incomplete = (reason: string) => ({
  status: 'incomplete',
  incomplete_details: { reason },
})

test.each([
  [response([]), 'end'],
  [response([message({ type: 'refusal', refusal: 'No.' })]), 'refusal'],
  [response([], incomplete('max_output_tokens')), 'max_tokens'],
  [response([], incomplete('content_filter')), 'content_filter'],
])('%# is read with the reason %s', (body, reason) => {
  expect(read(body).events.at(-1)).toMatchObject({ reason })
})

test('searches of the provider are part of the usage', () => {
  const { events } = read(response([], { tool_usage: { web_search: { num_requests: 2 } } }))
  expect(events.at(-1)).toMatchObject({ usage: { webSearches: 2 } })
})

test('an image is noticed', () => {
  const image = { id: 'ig_1', type: 'image_generation_call', result: 'QQ==' }
  expect(read(response([image])).hasMedia).toBe(true)
  expect(read(response([message()])).hasMedia).toBe(false)
})

test.each([
  ['no output', response(undefined)],
  ['output that is no list', response('Hello')],
  ['a response that is not finished', response([], { status: 'in_progress' })],
  ['a response that waits', response([], { status: 'queued' })],
  ['a call without a name', response([{ type: 'function_call', call_id: 'c' }])],
  ['an empty body', {}],
])('%s is no answer', (_, body: Json) => {
  expect(() => read(body)).toThrow(BrokenAnswer)
})

const error = { code: 'rate_limit_exceeded', message: 'Busy.' }

test.each([
  [response([], { status: 'failed', error }), 'overloaded'],
  [{ error: { code: 'context_length_exceeded', message: 'Long.' } }, 'upstream_rejected'],
  [response(undefined, { status: 'failed' }), 'upstream_error'],
  [response([], { status: 'cancelled' }), 'upstream_error'],
])('the failure in %j is one of the model', (body: Json, code) => {
  expect(() => read(body)).toThrow(expect.objectContaining({ code }) as ApiError)
})
