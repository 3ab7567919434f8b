import { expect, test } from 'vitest'

import {
  type AnswerEvent,
  type Block,
  type Json,
  noUsage,
  type StopReason,
} from '#formats/answer.ts'
import { ApiError } from '#platform/api-error.ts'

import { chatCallerFormat } from './chat-completion-format.ts'
import { answering, credits, endOfStream, receipt } from './testing/golden-streams.ts'

const { createWriter, fold } = chatCallerFormat

const started: AnswerEvent = { type: 'started', id: 'msg_1', model: 'theirs', usage: noUsage }
const start = (index: number, block: Block): AnswerEvent => ({
  type: 'block_started',
  index,
  block,
})
const say = (index: number, text: string): AnswerEvent => ({ type: 'block_delta', index, text })
const end = (index: number): AnswerEvent => ({ type: 'block_ended', index })
const finished = (reason: StopReason = 'end'): AnswerEvent => ({
  type: 'finished',
  reason,
  stopSequence: null,
  usage: { ...noUsage, inputTokens: 3, outputTokens: 2 },
})

function write(events: AnswerEvent[], request: Json = {}) {
  const writer = createWriter(answering(request))
  const frames = writer.write({ events, source: endOfStream })
  return { frames, closing: writer.close(receipt) }
}

/** Only what the model says. */
const deltas = (events: AnswerEvent[]) =>
  write(events).frames.map(({ data }) => (data as { choices: [{ delta: Json }] }).choices[0].delta)

const members = {
  id: 'chatcmpl-0123456789abcdefghjkmnpq',
  object: 'chat.completion.chunk',
  created: 1_800_000_000,
  model: 'their-name',
}
const choice = (delta: Json, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, logprobs: null, finish_reason }],
})
const frame = (data: Json | '[DONE]') => ({ event: null, data, bytes: null })
const text = [started, start(0, { type: 'text' }), say(0, 'Hi'), end(0), finished()]

test('a stream without usage ends with the credits beside the finish reason', () => {
  expect(write(text, { stream: true })).toEqual({
    frames: [
      frame({ ...members, ...choice({ role: 'assistant', content: '' }) }),
      frame({ ...members, ...choice({ content: 'Hi' }) }),
    ],
    closing: [frame({ ...members, ...choice({}, 'stop'), ...credits }), frame('[DONE]')],
  })
})

test('a stream with usage says null until a last chunk that has usage and credits', () => {
  const request = { stream: true, stream_options: { include_usage: true } }
  expect(write(text, request)).toEqual({
    frames: [
      frame({ ...members, ...choice({ role: 'assistant', content: '' }), usage: null }),
      frame({ ...members, ...choice({ content: 'Hi' }), usage: null }),
    ],
    closing: [
      frame({ ...members, ...choice({}, 'stop'), usage: null }),
      frame({
        ...members,
        choices: [],
        usage: {
          prompt_tokens: 3,
          completion_tokens: 2,
          total_tokens: 5,
          prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
          completion_tokens_details: { reasoning_tokens: 0 },
        },
        ...credits,
      }),
      frame('[DONE]'),
    ],
  })
})

test('tool calls are numbered by themselves and may overlap', () => {
  const call = (id: string): Block => ({ type: 'tool_call', id, name: `do_${id}` })
  const head = (index: number, id: string) => ({
    tool_calls: [{ index, id, type: 'function', function: { name: `do_${id}`, arguments: '' } }],
  })
  const more = (index: number, text: string) => ({
    tool_calls: [{ index, function: { arguments: text } }],
  })
  const said = deltas([
    started,
    start(0, { type: 'text' }),
    say(0, 'Now'),
    end(0),
    start(1, call('a')),
    start(2, call('b')),
    say(2, '{"b"'),
    say(1, '{}'),
    say(2, ':1}'),
    end(1),
    end(2),
  ])
  expect(said.slice(2)).toEqual([
    head(0, 'a'),
    head(1, 'b'),
    more(1, '{"b"'),
    more(0, '{}'),
    more(1, ':1}'),
  ])
})

test('a call without arguments gets an empty object', () => {
  const events = [started, start(0, { type: 'tool_call', id: 'a', name: 'f' }), end(0)]
  const { frames, closing } = write([...events, finished('tool_call')])
  expect(fold([...frames, ...closing])).toMatchObject({
    choices: [{ message: { content: null, tool_calls: [{ function: { arguments: '{}' } }] } }],
  })
})

test('texts that overlap are written one after the other', () => {
  const said = deltas([
    started,
    start(0, { type: 'text' }),
    start(1, { type: 'text' }),
    say(1, 'c'),
    say(0, 'a'),
    say(1, 'd'),
    end(1),
    say(0, 'b'),
    end(0),
  ])
  expect(said.slice(1)).toEqual(['a', 'b', 'c', 'd'].map((content) => ({ content })))
})

test.each([
  ['end', 'stop'],
  ['stop_sequence', 'stop'],
  ['pause', 'stop'],
  ['max_tokens', 'length'],
  ['tool_call', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['refusal', 'content_filter'],
] as const)('the end %s is called %s', (reason, called) => {
  expect(write([started, finished(reason)]).closing[0]?.data).toMatchObject(choice({}, called))
})

test('a refusal in words ends as any answer', () => {
  const refusal = [started, start(0, { type: 'refusal' }), say(0, 'No.'), end(0)]
  const { frames, closing } = write([...refusal, finished('refusal')])
  expect(fold([...frames, ...closing])).toMatchObject({
    choices: [{ finish_reason: 'stop', message: { content: null, refusal: 'No.' } }],
  })
})

test('nothing is written after the end', () => {
  const writer = createWriter(answering())
  writer.write({ events: text, source: endOfStream })
  const more = [start(1, { type: 'text' }), say(1, 'more')]
  expect(writer.write({ events: more, source: endOfStream })).toEqual([])
})

test.each([chatCallerFormat.createWriter, chatCallerFormat.createPassThrough])(
  'an error in the middle is one frame in the words of the family',
  (create) => {
    expect(create(answering()).fail(new ApiError('overloaded', 'Too much.'))).toEqual([
      frame({
        error: { message: 'Too much.', type: 'server_error', param: null, code: 'overloaded' },
      }),
    ])
  },
)

test.each([chatCallerFormat.createWriter, chatCallerFormat.createPassThrough])(
  'a policy that ends a stream is named beside the error',
  (create) => {
    const policy = { policy_id: 'pol_1', version: 3, reason_code: 'RULE_MATCHED' }
    const error = new ApiError('policy_blocked', 'A policy blocks this.', { policy })
    expect(create(answering()).fail(error)).toMatchObject([
      { data: { error: { type: 'invalid_request_error', code: 'policy_blocked' }, policy } },
    ])
  },
)
