import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { meaningOf, plainSource } from '#formats/testing/meaning-of.ts'
import type { ApiError } from '#platform/api-error.ts'

import { readPlainMessage, settlePlainMessage } from './plain-message.ts'

const usage = {
  input_tokens: 10,
  cache_creation_input_tokens: 2,
  cache_read_input_tokens: 3,
  output_tokens: 7,
}
const message = (content: unknown, members: Json = {}): Json => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'theirs',
  content,
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage,
  ...members,
})
const read = (body: Json | string) => readPlainMessage(plainSource(body))
const receipt = { remainingCredits: null, creditsUsed: 7, costUsd: 0.000007, usage: null }

test('all that a message may have is read, in its order', () => {
  const { events, reportedUsage } = read(
    message(
      [
        { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
        { type: 'redacted_thinking', data: 'c2VhbGVk' },
        { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
        { type: 'text', text: 'It is ', citations: null },
        { type: 'text', text: '' },
        { type: 'tool_use', id: 't1', name: 'look', input: { at: [1, 'ü'] } },
        { type: 'tool_use', id: 't2', name: 'wait', input: {} },
      ],
      { stop_reason: 'tool_use' },
    ),
  )
  const own = { origin: 'messages', id: null }
  expect(meaningOf(events)).toEqual({
    id: 'msg_1',
    model: 'theirs',
    text: 'It is ',
    refusal: '',
    reasoning: 'Hm.',
    opaque: [
      { ...own, kind: 'signature', data: 'c2ln' },
      { ...own, kind: 'redacted', data: 'c2VhbGVk' },
    ],
    calls: [
      { id: 't1', name: 'look', arguments: { at: [1, 'ü'] } },
      { id: 't2', name: 'wait', arguments: {} },
    ],
    reason: 'tool_call',
    stopSequence: null,
    usage: {
      inputTokens: 15,
      outputTokens: 7,
      cachedInputTokens: 3,
      cacheWriteTokens: 2,
      reasoningTokens: 0,
    },
  })
  expect(reportedUsage).toEqual(usage)
})

test('a stop sequence is told', () => {
  const { events } = read(message([], { stop_reason: 'stop_sequence', stop_sequence: 'END' }))
  expect(events.at(-1)).toMatchObject({ reason: 'stop_sequence', stopSequence: 'END' })
})

test('numbers in the input of a tool keep their digits', () => {
  const input = '{"id":1234567890123456789}'
  const text = JSON.stringify(
    message([{ type: 'tool_use', id: 't', name: 'f', input: 'HERE' }]),
  ).replace('"HERE"', input)
  expect(read(text).events).toContainEqual({ type: 'block_delta', index: 0, text: input })
  expect(settlePlainMessage(plainSource(text), receipt)).toContain(input)
})

test('citations that are null are left out, and everything else stays as it was', () => {
  const cited = [{ type: 'char_location', cited_text: 'q' }]
  const body = message([
    { type: 'text', text: 'a', citations: null },
    { type: 'text', text: 'b', citations: cited },
    { type: 'tool_use', id: 't', name: 'f', input: { citations: null, n: 'HERE' } },
  ])
  const text = JSON.stringify(body).replace('"HERE"', '1234567890123456789')
  const settled = settlePlainMessage(plainSource(text), receipt)
  expect(settled).toContain('"input":{"citations":null,"n":1234567890123456789}')
  expect((JSON.parse(settled) as Json)['content']).toMatchObject([
    { type: 'text', text: 'a' },
    { type: 'text', text: 'b', citations: cited },
    { type: 'tool_use' },
  ])
  expect(settled.match(/"citations":null/g)).toHaveLength(1)
})

test('counts that a usage must have are added', () => {
  const body = message([], { usage: { input_tokens: 4, speed: 'fast' } })
  expect(JSON.parse(settlePlainMessage(plainSource(body), receipt))).toMatchObject({
    usage: {
      input_tokens: 4,
      output_tokens: 0,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      speed: 'fast',
    },
    remaining_credits: null,
  })
})

const many = Array.from({ length: 10_001 }, () => '12345678901234567890').join()

test.each([
  ['no content', message(undefined)],
  ['content that is no list', message('Hello')],
  ['a block that is no object', message(['Hello'])],
  ['a tool call without a name', message([{ type: 'tool_use', id: 't', input: {} }])],
  ['redacted thinking without data', message([{ type: 'redacted_thinking' }])],
  ['an empty body', {}],
])('%s is no answer', (_, body) => {
  expect(() => read(body)).toThrow(BrokenAnswer)
})

test('a tool input with too many numbers that a double cannot hold is no answer', () => {
  const text = JSON.stringify(
    message([{ type: 'tool_use', id: 't', name: 'f', input: { list: 'HERE' } }]),
  ).replace('"HERE"', `[${many}]`)
  expect(() => read(text)).toThrow(BrokenAnswer)
})

test.each([
  [{ type: 'error', error: { type: 'overloaded_error', message: 'Busy.' } }, 'overloaded'],
  [{ error: { type: 'api_error', message: 'Broken.' } }, 'upstream_error'],
  [{ type: 'error' }, 'upstream_error'],
])('the failure %j inside an answer is one of the model', (body, code) => {
  expect(() => read(body)).toThrow(expect.objectContaining({ code }) as ApiError)
})
