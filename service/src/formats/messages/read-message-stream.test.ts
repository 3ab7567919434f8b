import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'

import { createMessageReader } from './read-message-stream.ts'

const sourceOf = (json: Json, event = '') => ({ event, data: 'x', bytes: Buffer.alloc(0), json })

const start = { type: 'message_start', message: { id: 'm', model: 'n', usage: {} } }
const startOf = (block: Json, index: unknown = 0) => ({
  type: 'content_block_start',
  index,
  content_block: block,
})
const deltaOf = (delta: Json, index = 0) => ({ type: 'content_block_delta', index, delta })
const stopOf = (index = 0) => ({ type: 'content_block_stop', index })
const text = { type: 'text', text: '' }
const said = { type: 'text_delta', text: 'a' }
const end = { type: 'message_stop' }

function read(...frames: Json[]) {
  const reader = createMessageReader()
  return frames.flatMap((json) => reader.read(sourceOf(json)))
}

test.each([
  ['a delta of a block that was never started', [start, deltaOf(said)]],
  ['the end of a block that was never started', [start, stopOf()]],
  ['a delta of a block that has ended', [start, startOf(text), stopOf(), deltaOf(said)]],
  ['a block that is started twice', [start, startOf(text), startOf(text)]],
  ['a block before the message', [startOf(text)]],
  ['a second message', [start, start]],
  ['a message that is none', [{ type: 'message_start', message: 'x' }]],
  ['a block without an index', [start, startOf(text, null)]],
  ['a delta without text', [start, startOf(text), deltaOf({ type: 'text_delta', text: 5 })]],
  [
    'a delta of another kind of block',
    [start, startOf(text), deltaOf({ type: 'input_json_delta', partial_json: '{' })],
  ],
  ['a tool call without a name', [start, startOf({ type: 'tool_use', id: 'a' })]],
])('%s is a broken answer', (_what, frames) => {
  expect(() => read(...frames)).toThrow(BrokenAnswer)
})

test.each([
  ['overloaded_error', 'overloaded'],
  ['rate_limit_error', 'overloaded'],
  ['timeout_error', 'upstream_timeout'],
  ['invalid_request_error', 'upstream_rejected'],
  ['api_error', 'upstream_error'],
  ['something_new', 'upstream_error'],
])('%s in mid-stream is %s', (type, code) => {
  const error = { type: 'error', error: { type, message: 'x'.repeat(400) } }
  expect(() => read(start, error)).toThrow(
    expect.objectContaining({ code, message: `The model provider failed: ${'x'.repeat(273)}` }),
  )
})

test('an error without a message is still reported, even before the answer has started', () => {
  expect(() => read({ type: 'error' })).toThrow(expect.objectContaining({ code: 'upstream_error' }))
})

test('an event whose data have no type goes by its name', () => {
  const reader = createMessageReader()
  expect(reader.read(sourceOf({ message: start.message }, 'message_start'))).toMatchObject([
    { type: 'started', id: 'm' },
  ])
})

test('pings, comments, unknown events and names of object members are ignored', () => {
  expect(read({ type: 'ping' }, {}, start, { type: 'new' }, { type: 'toString' })).toHaveLength(1)
})

test('text and signature given with the start of a block count', () => {
  const thinking = { type: 'thinking', thinking: 'hm', signature: 's' }
  const events = read(start, startOf({ type: 'text', text: 'a' }), startOf(thinking, 1), stopOf(1))
  expect(events.slice(1)).toMatchObject([
    { type: 'block_started', index: 0 },
    { type: 'block_delta', index: 0, text: 'a' },
    { type: 'block_started', index: 1 },
    { type: 'block_delta', index: 1, text: 'hm' },
    { type: 'block_sealed', index: 1, opaque: { data: 's' } },
    { type: 'block_ended', index: 1 },
  ])
})

test('blocks that were left open end with the message, and each ends once', () => {
  const events = read(start, startOf(text), startOf(text, 1), stopOf(1), stopOf(1), end)
  expect(events.map(({ type }) => type)).toEqual([
    'started',
    'block_started',
    'block_started',
    'block_ended',
    'block_ended',
    'finished',
  ])
})

test('a message ends once; whatever follows is ignored', () => {
  const reader = createMessageReader()
  reader.read(sourceOf(start))
  expect(reader.isFinished()).toBe(false)
  expect(reader.read(sourceOf(end))).toMatchObject([{ type: 'finished', reason: 'end' }])
  expect(reader.isFinished()).toBe(true)
  expect(reader.read(sourceOf(end))).toEqual([])
  expect(reader.read(sourceOf({ type: 'error' }))).toEqual([])
})

const usageAfter = (first: Json, ...later: Json[]) =>
  read(
    { type: 'message_start', message: { usage: first } },
    ...later.map((usage) => ({ type: 'message_delta', delta: {}, usage })),
    end,
  ).at(-1)

test.each([-1, 1.5, 2e9, '7', null, Infinity])('an impossible count (%s) is 0', (count) => {
  const usage = { input_tokens: count, output_tokens: count, cache_read_input_tokens: count }
  expect(usageAfter(usage)).toMatchObject({
    usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 },
  })
})

test('later counts win over earlier ones, unless they say nothing', () => {
  const first = { input_tokens: 10, cache_read_input_tokens: 0, output_tokens: 1 }
  const counted = usageAfter(
    first,
    { input_tokens: 4, cache_read_input_tokens: 6, output_tokens: 20 },
    { input_tokens: 0, cache_read_input_tokens: null, output_tokens: -3 },
  )
  expect(counted).toMatchObject({
    usage: { inputTokens: 10, cachedInputTokens: 6, outputTokens: 20 },
  })
})

test.each(['heroic', 'constructor', 7])(
  'kinds of deltas and reasons to stop that we do not know, such as %s, mean nothing',
  (unknown) => {
    const events = read(
      start,
      startOf(text),
      deltaOf({ type: unknown }),
      { type: 'message_delta', delta: { stop_reason: unknown } },
      end,
    )
    expect(events.map(({ type }) => type)).toEqual([
      'started',
      'block_started',
      'block_ended',
      'finished',
    ])
    expect(events.at(-1)).toMatchObject({ reason: 'end' })
  },
)
