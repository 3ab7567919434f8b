import { Message } from '@gatehouse/contract/message'
import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import type { OutFrame } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { toSse } from '#formats/sse.ts'
import { parseStream } from '#formats/testing/parse-stream.ts'
import { ApiError } from '#platform/api-error.ts'

import { messageCallerFormat, messageUpstreamFormat } from './message-format.ts'
import { readMessageUsage } from './message-usage.ts'
import {
  answering,
  bytesOf,
  eventsOf,
  expectedOf,
  readAll,
  receipt,
  wholeStreams,
  writeAll,
} from './testing/golden-streams.ts'

const framesOf = (name: string) => readAll(parseStream([bytesOf(name)]))
const passed = (name: string) =>
  writeAll(messageCallerFormat.createPassThrough(answering), framesOf(name))
const rebuilt = (name: string) =>
  writeAll(messageCallerFormat.createWriter(answering), framesOf(name))
const typesOf = (frames: readonly OutFrame[]) =>
  frames.map(({ data }) => (data === '[DONE]' ? data : data['type']))

test.each(wholeStreams)('%s: the reader tells what the stream says', (name) => {
  expect(eventsOf(framesOf(name))).toEqual(expectedOf(name).events)
})

test.each(wholeStreams)(
  '%s: all but the closing frames pass with the bytes they came in',
  (name) => {
    const sources = parseStream([bytesOf(name)])
    const last = sources.findLastIndex(({ event }) => event === 'message_delta')
    const out = passed(name)
    const sent = Buffer.concat(out.slice(0, -2).map(({ bytes }) => bytes ?? Buffer.from('changed')))
    expect(sent).toEqual(Buffer.concat(sources.slice(0, last).map(({ bytes }) => bytes)))
    expect(out.at(-2)).toMatchObject({ event: 'message_delta', bytes: null })
    expect(out.at(-1)).toMatchObject({ event: 'message_stop', bytes: sources[last + 1]?.bytes })
  },
)

test.each(wholeStreams)('%s: a passed stream folds to the whole message', (name) => {
  const body = messageCallerFormat.fold(passed(name))
  expect(body).toEqual(expectedOf(name).body)
  expect(Message.safeParse(body).error).toBeUndefined()
})

test.each(wholeStreams)(
  '%s: a rebuilt stream folds to the same message under our names',
  (name) => {
    const { body, rebuilt: differing = body } = expectedOf(name)
    expect(messageCallerFormat.fold(rebuilt(name))).toEqual({
      ...differing,
      id: 'msg_0123456789abcdefghjkmnpq',
      model: 'our-model',
    })
  },
)

test.each(wholeStreams)(
  '%s: a rebuilt stream reads like the original, sent over the wire',
  (name) => {
    const bytes = Buffer.concat(rebuilt(name).map((frame) => Buffer.from(toSse(frame))))
    const [start, ...others] = eventsOf(readAll(parseStream([bytes])))
    const [original, ...expected] = expectedOf(name).events
    expect(others).toEqual(expected)
    expect({ ...original, id: '', model: '' }).toEqual({ ...start, id: '', model: '' })
  },
)

test('the receipt stands beside the last word on the message, and the stop follows', () => {
  const [delta, stop] = passed('text').slice(-2)
  expect(delta?.data).toEqual({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: {
      input_tokens: 12,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 6,
    },
    remaining_credits: 4999,
    estimated_credits_used: 123,
    estimated_cost_usd: 0.000123,
  })
  expect(stop?.data).toEqual({ type: 'message_stop' })
})

test('an unknown balance is null', () => {
  const [delta] = messageCallerFormat
    .createPassThrough(answering)
    .close({ ...receipt, remainingCredits: null })
  expect(delta?.data).toMatchObject({ remaining_credits: null })
})

test('pings and events we do not know pass; what follows the end does not', () => {
  expect(typesOf(passed('text'))).toContain('ping')
  expect(typesOf(passed('unknown'))).toContain('shiny_new_event')
  expect(typesOf(passed('unknown')).at(-1)).toBe('message_stop')
  expect(typesOf(passed('unknown'))).not.toContain('ping')
})

test('a failure in mid-stream is an error of ours; nothing is finished', () => {
  const [start, block, text, error] = parseStream([bytesOf('overloaded')])
  const reader = messageUpstreamFormat.createReader()
  for (const source of [start!, block!, text!]) reader.read(source)
  expect(() => reader.read(error!)).toThrow(
    expect.objectContaining({
      code: 'overloaded',
      message: 'The model provider failed: Overloaded',
    }),
  )
  expect(reader.isFinished()).toBe(false)
})

test('a stream that ends early is not finished', () => {
  const reader = messageUpstreamFormat.createReader()
  for (const source of parseStream([bytesOf('early-end')])) reader.read(source)
  expect(reader.isFinished()).toBe(false)
})

test.each([messageCallerFormat.createWriter, messageCallerFormat.createPassThrough])(
  'what fails on our side is told as an error event of the family',
  (create) => {
    const error = new ApiError('upstream_timeout', 'The model provider did not answer in time.')
    expect(create(answering).fail(error)).toEqual([
      {
        event: 'error',
        data: {
          type: 'error',
          error: { type: 'timeout_error', message: error.message, code: 'upstream_timeout' },
          request_id: answering.requestId,
        },
        bytes: null,
      },
    ])
  },
)

test.each([messageCallerFormat.createWriter, messageCallerFormat.createPassThrough])(
  'a policy that ends a stream is named beside the error',
  (create) => {
    const policy = { policy_id: 'pol_1', version: 3, reason_code: 'RULE_MATCHED' }
    const error = new ApiError('policy_blocked', 'A policy blocks this.', { policy })
    expect(create(answering).fail(error)).toMatchObject([
      { data: { error: { type: 'invalid_request_error', code: 'policy_blocked' }, policy } },
    ])
  },
)

const start = { type: 'message_start', message: { content: [] } }
const call = {
  type: 'content_block_start',
  index: 0,
  content_block: { type: 'tool_use', id: 'a', name: 'f', input: {} },
}
const input = (json: string) => ({
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'input_json_delta', partial_json: json },
})
const fold = (...data: object[]) =>
  messageCallerFormat.fold(data.map((json) => ({ event: null, data: { ...json }, bytes: null })))

test.each([
  ['unreadable input', [start, call, input('{"a"')]],
  ['input that is no object', [start, call, input('[1]')]],
  ['a block without a start', [start, input('{}')]],
  ['no beginning', [call]],
])('%s is a broken answer', (_what, frames) => {
  expect(() => fold(...frames)).toThrow(BrokenAnswer)
})

test.each([
  [{ type: 'error', error: { type: 'not_found_error', message: 'No.' } }, 'No.', 'not_found_error'],
  [{ error: 'Plain.' }, 'Plain.', null],
  [{ message: 'Elsewhere.' }, 'Elsewhere.', null],
])('an upstream is quoted when it says something: %j', (body, message, type) => {
  expect(messageUpstreamFormat.readError(body)).toEqual({ message, type, code: null })
})

test.each([{}, { error: {} }, { error: { message: '' } }, { error: 5 }])(
  'an upstream that says nothing readable is not quoted: %j',
  (body) => {
    expect(messageUpstreamFormat.readError(body)).toBeNull()
  },
)

const counted = {
  inputTokens: 100,
  outputTokens: 20,
  cachedInputTokens: 30,
  cacheWriteTokens: 0,
  reasoningTokens: 5,
}

test('usage that was counted here stands in place of the provider’s, in a stream and in a plain answer', () => {
  const settled = {
    input_tokens: 70,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 30,
    output_tokens: 20,
    output_tokens_details: { thinking_tokens: 5 },
  }
  for (const create of [messageCallerFormat.createPassThrough, messageCallerFormat.createWriter]) {
    const writer = create(answering)
    const start = {
      type: 'message_start',
      message: { id: 'm', usage: { input_tokens: 7, cache_creation_input_tokens: 9 } },
    }
    const stop = {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { output_tokens: 1 },
    }
    const sources = [start, stop, { type: 'message_stop' }].map((json) => ({
      event: json.type,
      data: JSON.stringify(json),
      bytes: Buffer.alloc(0),
      json,
    }))
    const frames = readAll(sources).flatMap((frame) => writer.write(frame))
    const closing = writer.close({ ...receipt, usage: counted })
    expect((closing[0]!.data as Json)['usage']).toEqual(settled)
    expect(messageCallerFormat.fold([...frames, ...closing])['usage']).toEqual(settled)
  }
})

test('a number that a double cannot hold reaches the tool as the model wrote it', () => {
  const json = '{"id":1234567890123456789}'
  const opening = { type: 'tool_use', id: 't', name: 'f', input: {} }
  const frames = [
    { type: 'message_start', message: { id: 'm' } },
    { type: 'content_block_start', index: 0, content_block: opening },
    {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'input_json_delta', partial_json: json },
    },
  ].map((data) => ({ event: data.type, data, bytes: null }))
  expect(JSON.stringify(messageCallerFormat.fold(frames)['content'])).toContain(`"input":${json}`)
  const number = { type: 'input_json_delta', partial_json: '1234567890123456789' }
  const bad = { ...frames[2]!.data, delta: number }
  expect(() =>
    messageCallerFormat.fold([frames[0]!, frames[1]!, { ...frames[2]!, data: bad }]),
  ).toThrow('The input of a tool call is not a JSON object.')
})

test('what the provider read on its own account is part of the usage', () => {
  const iterations = [
    { type: 'compaction', input_tokens: 180_000, output_tokens: 3500 },
    { type: 'message', input_tokens: 23_000, output_tokens: 1000 },
  ]
  expect(readMessageUsage({ input_tokens: 23_000, output_tokens: 1000, iterations })).toMatchObject(
    {
      inputTokens: 203_000,
      outputTokens: 4500,
    },
  )
  expect(readMessageUsage({ input_tokens: 5, output_tokens: 2, iterations: [] })).toMatchObject({
    inputTokens: 5,
  })
})
