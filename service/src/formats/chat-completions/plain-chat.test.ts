import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { packOpaqueState } from '#formats/opaque-state.ts'
import { meaningOf, plainSource } from '#formats/testing/meaning-of.ts'
import type { OpaqueState } from '#formats/turn.ts'
import type { ApiError } from '#platform/api-error.ts'

import { readPlainChat } from './plain-chat.ts'

const completion = (message: unknown, members: Json = {}, choice: Json = {}): Json => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'theirs',
  choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop', ...choice }],
  usage: {
    prompt_tokens: 10,
    completion_tokens: 7,
    total_tokens: 17,
    prompt_tokens_details: { cached_tokens: 3 },
    completion_tokens_details: { reasoning_tokens: 5 },
  },
  ...members,
})
const read = (body: Json) => readPlainChat(plainSource(body))
const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})

test('all that a message may have is read', () => {
  const tool_calls = [call('c1', 'look', '{"at":1}'), call('c2', 'wait', '')]
  const { events, reportedUsage } = read(
    completion({ role: 'assistant', content: 'It is ', reasoning_content: 'Hm.', tool_calls }),
  )
  expect(meaningOf(events)).toEqual({
    id: 'chatcmpl-1',
    model: 'theirs',
    text: 'It is ',
    refusal: '',
    reasoning: 'Hm.',
    opaque: [],
    calls: [
      { id: 'c1', name: 'look', arguments: { at: 1 } },
      { id: 'c2', name: 'wait', arguments: {} },
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

test('every block of reasoning gets its own opaque state', () => {
  const state = (data: string): OpaqueState => ({
    origin: 'messages',
    kind: 'signature',
    data,
    id: null,
  })
  const reasoning_signature = `${packOpaqueState(state('a'))} ${packOpaqueState(state('b'))}@5`
  const { events } = read(
    completion({ content: 'Yes', reasoning_content: 'firstsecond', reasoning_signature }),
  )
  expect(events.filter(({ type }) => type === 'block_sealed' || type === 'block_delta')).toEqual([
    { type: 'block_delta', index: 0, text: 'first' },
    { type: 'block_sealed', index: 0, opaque: state('a') },
    { type: 'block_delta', index: 1, text: 'second' },
    { type: 'block_sealed', index: 1, opaque: state('b') },
    { type: 'block_delta', index: 2, text: 'Yes' },
  ])
})

test.each([
  [{ content: 'a' }, 'length', 'max_tokens'],
  [{ content: 'a' }, 'content_filter', 'content_filter'],
  [{ content: null, refusal: 'No.' }, 'stop', 'refusal'],
  [{ content: null, tool_calls: [call('c', 'f', '{}')] }, 'stop', 'tool_call'],
  [{ content: null, function_call: { name: 'f', arguments: '{}' } }, 'function_call', 'tool_call'],
  [{ content: 'a' }, 'anything', 'end'],
])('%j that ends with %s is read as %s', (message, finish_reason, reason) => {
  const { events } = read(completion(message, {}, { finish_reason }))
  expect(events.at(-1)).toMatchObject({ reason })
})

test('audio and images are noticed', () => {
  expect(read(completion({ content: null, audio: { data: 'QQ==' } })).hasMedia).toBe(true)
  expect(read(completion({ content: '', images: [{}] })).hasMedia).toBe(true)
  expect(read(completion({ content: 'a', images: [] })).hasMedia).toBe(false)
})

test('a call without an id gets one, and an answer without usage reports none', () => {
  const { events, reportedUsage } = read(
    completion({ tool_calls: [{ function: { name: 'f', arguments: '{}' } }] }, { usage: null }),
  )
  expect(meaningOf(events).calls).toEqual([{ id: 'call_chatcmpl-1_0', name: 'f', arguments: {} }])
  expect(reportedUsage).toBeUndefined()
})

test.each([
  ['no choices', { id: 'a' }],
  ['an empty list of choices', { choices: [] }],
  ['choices that are no list', { choices: {} }],
  ['a choice that is no object', { choices: ['Hello'] }],
  ['a choice without a message', completion(undefined)],
  ['no finish reason', completion({ content: 'a' }, {}, { finish_reason: null })],
  ['content that is no text', completion({ content: [{ type: 'text', text: 'a' }] })],
  ['a second choice', completion({ content: 'a' }, {}, { index: 1 })],
  [
    'two choices without an index',
    {
      choices: [
        { message: { content: 'a' }, finish_reason: 'stop' },
        { message: { content: 'b' }, finish_reason: 'stop' },
      ],
    },
  ],
  ['a tool call that is no object', completion({ tool_calls: ['f'] })],
  ['a tool call without a name', completion({ tool_calls: [{ id: 'c', function: {} }] })],
  ['arguments that are no text', completion({ tool_calls: [{ function: { arguments: {} } }] })],
])('%s is no answer', (_, body: Json) => {
  expect(() => read(body)).toThrow(BrokenAnswer)
})

test.each([
  [{ error: { message: 'Busy.', code: 'rate_limit_exceeded' } }, 'overloaded'],
  [{ error: 'Broken.' }, 'upstream_error'],
  [completion({ content: 'a' }, { error: { message: 'Late.', code: 504 } }), 'upstream_timeout'],
])('the failure in %j is one of the model', (body: Json, code) => {
  expect(() => read(body)).toThrow(expect.objectContaining({ code }) as ApiError)
})
