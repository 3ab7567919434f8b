import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { parseStream } from '#formats/testing/parse-stream.ts'

import { responseUpstreamFormat } from './response-format.ts'
import { eventsOf, sumUp, toSource } from './testing/golden-streams.ts'

const created = { type: 'response.created', response: { id: 'resp_1', model: 'm' } }
const completed = (response: Json = {}) => ({
  type: 'response.completed',
  response: { id: 'resp_1', model: 'm', status: 'completed', ...response },
})
const message = {
  type: 'response.output_item.added',
  output_index: 0,
  item: { id: 'msg_1', type: 'message', role: 'assistant', content: [] },
}
const delta = (text: unknown, more: Json = {}) => ({
  type: 'response.output_text.delta',
  item_id: 'msg_1',
  output_index: 0,
  content_index: 0,
  delta: text,
  ...more,
})
const read = (...frames: Json[]) => eventsOf(toSource(...frames))
const blocksOf = (...frames: Json[]) =>
  sumUp(read(created, ...frames, completed())).blocks.map(({ block, text }) => [block.type, text])

test('text without a part that was announced is still read', () => {
  expect(blocksOf(message, delta('Hi'))).toEqual([['text', 'Hi']])
})

test('an end that has more than its pieces adds the rest', () => {
  const done = { ...delta(undefined), type: 'response.output_text.done', text: 'Hi there' }
  expect(blocksOf(message, delta('Hi'), done)).toEqual([['text', 'Hi there']])
})

test('an end that trims its text, or leaves it out, changes nothing', () => {
  for (const text of ['Hi', '']) {
    const done = { ...delta(undefined), type: 'response.output_text.done', text }
    expect(blocksOf(message, delta(' Hi\n'), done)).toEqual([['text', ' Hi\n']])
  }
})

test('a frame without a place is found by its item, and other ids at the same place do not matter', () => {
  expect(blocksOf(message, delta('a', { output_index: undefined }))).toEqual([['text', 'a']])
  expect(blocksOf(message, delta('a', { item_id: 'msg_other' }))).toEqual([['text', 'a']])
})

test('the arguments of a call may come in pieces, or at the end of arguments, item or response', () => {
  const item = { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'now' }
  const added = {
    type: 'response.output_item.added',
    output_index: 0,
    item: { ...item, arguments: '' },
  }
  const whole = { ...item, arguments: '{"a":1}' }
  const ends: Json[][] = [
    [{ type: 'response.function_call_arguments.delta', output_index: 0, delta: '{"a":1}' }],
    [{ type: 'response.function_call_arguments.done', output_index: 0, arguments: '{"a":1}' }],
    [{ type: 'response.output_item.done', output_index: 0, item: whole }],
    [],
  ]
  for (const end of ends) {
    const { blocks, reason } = sumUp(read(created, added, ...end, completed({ output: [whole] })))
    expect(blocks).toMatchObject([{ block: { id: 'call_1', name: 'now' }, text: '{"a":1}' }])
    expect(reason).toBe('tool_call')
  }
})

test('a custom call that is cut off still ends with whole JSON', () => {
  const item = { id: 'c', type: 'custom_tool_call', call_id: 'call_1', name: 'sh', input: '' }
  const { blocks } = sumUp(
    read(
      created,
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.custom_tool_call_input.delta', output_index: 0, delta: 'a"\n' },
      { type: 'response.incomplete', response: {} },
    ),
  )
  expect(JSON.parse(blocks[0]!.text)).toEqual({ input: 'a"\n' })
})

test('a summary wins over raw reasoning that comes after it', () => {
  const item = { id: 'rs_1', type: 'reasoning', summary: [] }
  const added = { type: 'response.output_item.added', output_index: 0, item }
  const summary = {
    type: 'response.reasoning_summary_text.delta',
    output_index: 0,
    summary_index: 0,
  }
  const raw = { type: 'response.reasoning_text.delta', output_index: 0, content_index: 0 }
  expect(blocksOf(added, { ...summary, delta: 'short' }, { ...raw, delta: 'long' })).toEqual([
    ['reasoning', 'short'],
  ])
})

test('usage that cannot be counts as nothing', () => {
  const usage = {
    input_tokens: -1,
    output_tokens: 1.5,
    input_tokens_details: { cached_tokens: 2e9 },
  }
  const counted = sumUp(read(created, completed({ usage }))).usage
  expect(Object.values(counted)).toEqual([0, 0, 0, 0, 0])
})

test('nothing is read after the end', () => {
  const reader = responseUpstreamFormat.createReader()
  const [first, last] = toSource(created, completed())
  expect(reader.isFinished()).toBe(false)
  reader.read(first!)
  reader.read(last!)
  expect(reader.isFinished()).toBe(true)
  expect(reader.read(toSource(message)[0]!)).toEqual([])
})

test('comments, end markers of other formats and unknown frames mean nothing', () => {
  const bytes = ': hello\n\ndata: [DONE]\n\nevent: constructor\ndata: {}\n\n'
  expect(eventsOf(parseStream([Buffer.from(bytes)]))).toEqual([])
})

const refusalDelta = { ...delta('no'), type: 'response.refusal.delta' }
const reasoning = { ...message, item: { id: 'rs_1', type: 'reasoning' } }
const partDone = {
  ...delta(undefined),
  type: 'response.content_part.done',
  part: { type: 'output_text', text: 'a' },
}
test.each<[string, Json[]]>([
  ['a delta of an item that never started', [delta('a')]],
  ['a delta without text', [message, delta(7)]],
  ['a text delta for reasoning', [reasoning, delta('a')]],
  ['a part that changes its kind', [message, delta('a'), refusalDelta]],
  ['a delta after the end of its part', [message, delta('a'), partDone, delta('b')]],
  ['an end that contradicts its pieces', [message, delta('b'), partDone]],
  ['two items at one place', [message, reasoning]],
  ['an item that is none', [{ ...message, item: 'msg' }]],
  ['a call without a name', [{ ...message, item: { type: 'function_call', call_id: 'c' } }]],
  ['an end without a response', [{ type: 'response.completed' }]],
])('%s is a broken answer', (_, frames) => {
  expect(() => read(created, ...frames)).toThrow(BrokenAnswer)
})

test.each([
  [{ type: 'error', code: 'server_is_overloaded', message: 'Busy.' }, 'overloaded'],
  [{ type: 'error', error: { type: 'rate_limit_error', message: 'Busy.' } }, 'overloaded'],
  [{ type: 'error', code: 'request_timeout', message: 'Busy.' }, 'upstream_timeout'],
  [{ type: 'error', code: null, message: 'Busy.' }, 'upstream_error'],
  [
    { type: 'response.failed', response: { error: { code: 'slow_down', message: 'Busy.' } } },
    'overloaded',
  ],
  [
    completed({ status: 'failed', error: { code: 'server_error', message: 'Busy.' } }),
    'upstream_error',
  ],
])('%j says that the model failed', (frame, code) => {
  expect(() => read(created, frame)).toThrow(
    expect.objectContaining({ code, message: 'The model provider failed: Busy.' }),
  )
  expect(() => read({ ...frame, type: 'response.failed', response: {} })).toThrow(
    expect.objectContaining({ message: 'The model provider failed.' }),
  )
})

test('an error without a type is recognized, and a long message is cut', () => {
  const [frame] = parseStream([Buffer.from(`data: {"error":{"message":"${'x'.repeat(400)}"}}\n\n`)])
  expect(() => responseUpstreamFormat.createReader().read(frame!)).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(/^The model provider failed: x{273}$/),
    }),
  )
})
