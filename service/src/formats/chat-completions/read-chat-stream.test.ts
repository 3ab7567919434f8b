import { expect, test } from 'vitest'

import type { AnswerEvent, Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { ApiError } from '#platform/api-error.ts'

import { readChatError } from './chat-error.ts'
import { createChatReader } from './read-chat-stream.ts'
import { endOfStream, eventsOf, outlineOf, readAll, source } from './testing/golden-streams.ts'

const chunk = (delta: Json, finish_reason: string | null = null, more: Json = {}) =>
  source({ id: 'c1', model: 'm', choices: [{ index: 0, delta, finish_reason }], ...more })
const finish = chunk({}, 'stop')
const usage = (figures: Json) => source({ choices: [], usage: figures })
const call = (...tool_calls: Json[]) => chunk({ tool_calls })

const outline = (...sources: Parameters<typeof readAll>[0]) => {
  const { frames, failure } = readAll(sources)
  if (failure) throw failure
  return outlineOf(eventsOf(frames))
}

test('an answer is finished by the usage after its end, or by the end of the stream', () => {
  const reader = createChatReader()
  reader.read(chunk({ content: 'Hi' }))
  expect(reader.read(finish).map(({ type }) => type)).toEqual(['block_ended'])
  expect(reader.isFinished()).toBe(false)
  expect(reader.read(usage({ prompt_tokens: 1 })).map(({ type }) => type)).toEqual(['finished'])
  expect(reader.isFinished()).toBe(true)
  expect(reader.read(endOfStream)).toEqual([])

  const other = createChatReader()
  other.read(finish)
  expect(other.read(endOfStream).map(({ type }) => type)).toEqual(['finished'])
})

test('a stream that ends before its finish reason is broken', () => {
  const reader = createChatReader()
  reader.read(chunk({ content: 'Hi' }))
  expect(() => reader.read(endOfStream)).toThrow(
    new BrokenAnswer('The answer ended in the middle.'),
  )
})

test('the last usage counts, also after some that came with the finish reason', () => {
  const partial = chunk({}, 'stop', { usage: { prompt_tokens: 3, completion_tokens: 1 } })
  const whole = usage({ prompt_tokens: 3, completion_tokens: 9 })
  expect(outline(partial, whole).at(-1)).toBe('finished end 3 in 9 out')
  expect(outline(partial).at(-1)).toBe('finished end 3 in 1 out')
  const early = chunk({ content: 'Hi' }, null, { usage: { completion_tokens: 1 } })
  const last = usage({ prompt_tokens: 3, completion_tokens: 2 })
  expect(outline(early, finish, last).at(-1)).toBe('finished end 3 in 2 out')
})

test.each([-1, 1.5, 1e9 + 1, '7', null, Number.NaN])('%j tokens count as none', (count) => {
  const impossible = { prompt_tokens: count, completion_tokens: 5 }
  expect(outline(finish, usage(impossible)).at(-1)).toBe('finished end 0 in 5 out')
})

test('a tool call ends when another block starts, if its arguments are whole', () => {
  const types = (events: readonly AnswerEvent[]) =>
    events.map((event) => ('index' in event ? `${event.type} ${event.index}` : event.type))
  const reader = createChatReader()
  const first = { index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }
  const second = { index: 1, id: 'b', function: { name: 'g', arguments: '{"x"' } }
  expect(types(reader.read(call(first)))).toEqual(['started', 'block_started 0', 'block_delta 0'])
  expect(types(reader.read(call(second)))).toEqual([
    'block_ended 0',
    'block_started 1',
    'block_delta 1',
  ])
  // The second is not whole: it stays open beside the text.
  expect(types(reader.read(chunk({ content: 'Wait' })))).toEqual([
    'block_started 2',
    'block_delta 2',
  ])
  const rest = { index: 1, function: { arguments: ':1}' } }
  expect(types(reader.read(call(rest)))).toEqual(['block_delta 1'])
  expect(types(reader.read(finish))).toEqual(['block_ended 2', 'block_ended 1'])
})

test('calls without an index are told apart by their ids', () => {
  const one = { id: 'a', function: { name: 'f', arguments: '{"n":1}' } }
  const two = { id: 'b', function: { name: 'f', arguments: '{"n":2}' } }
  expect(outline(call(one), call(two), finish).slice(1, -1)).toEqual([
    'tool_call a f {"n":1}',
    'tool_call b f {"n":2}',
  ])
})

test('a name that is said again is the same name', () => {
  const named = { index: 0, function: { name: 'f', arguments: '{' } }
  const again = { index: 0, id: 'a', function: { name: 'f', arguments: '}' } }
  expect(outline(call(named), call(again), finish)[1]).toBe('tool_call a f {}')
})

test('a call that never gets an id is given one', () => {
  const unnamed = { index: 2, function: { name: 'f', arguments: '{}' } }
  expect(outline(call(unnamed), finish)[1]).toBe('tool_call call_c1_2 f {}')
})

test('what a custom tool is given is read too', () => {
  const custom = { index: 0, id: 'a', type: 'custom', custom: { name: 'f', input: 'as it is' } }
  expect(outline(call(custom), finish)[1]).toBe('tool_call a f as it is')
})

test('reasoning is read under both names it has, and once', () => {
  expect(outline(chunk({ reasoning: 'Hm.' }), finish)[1]).toBe('reasoning Hm.')
  const both = chunk({ reasoning_content: 'Hm.', reasoning: 'Hm.' })
  expect(outline(both, finish)[1]).toBe('reasoning Hm.')
})

test('a signature that is not ours belongs to this format', () => {
  const signed = chunk({ reasoning_content: 'Hm.', reasoning_signature: 'their own @1' })
  expect(outline(signed, finish)[1]).toBe(
    'reasoning Hm. sealed chat_completions signature their own @1 null',
  )
})

test('a whole message in place of a delta is read', () => {
  const whole = { choices: [{ message: { content: 'All of it.' }, finish_reason: 'stop' }] }
  expect(outline(source(whole))).toContain('text All of it.')
  // Beside deltas it is what they have said already.
  expect(outline(chunk({ content: 'All of it.' }), source(whole))).toContain('text All of it.')
})

test('comments and events we do not know are not part of the answer', () => {
  const comment = { event: '', data: '', json: {}, bytes: Buffer.from(': hi\n\n') }
  const unknown = source({ object: 'x', choices: null })
  expect(outline(comment, unknown, chunk({ content: 'Yes' }), finish)).toEqual([
    'started c1 m',
    'text Yes',
    'finished end 0 in 0 out',
  ])
})

test.each([
  ['stop', 'end'],
  ['length', 'max_tokens'],
  ['content_filter', 'content_filter'],
  ['tool_calls', 'tool_call'],
  ['function_call', 'tool_call'],
  ['eos', 'end'],
])('the finish reason %s is %s', (said, reason) => {
  expect(outline(chunk({}, said)).at(-1)).toBe(`finished ${reason} 0 in 0 out`)
})

test('an empty finish reason is none', () => {
  const more = chunk({ content: 'Hi' }, '')
  expect(outline(more, more, finish)[1]).toBe('text HiHi')
})

test('a stop after tool calls is a call of tools', () => {
  const one = { index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }
  expect(outline(call(one), finish).at(-1)).toBe('finished tool_call 0 in 0 out')
})

test.each([
  [source({ choices: 'none' })],
  [source({ choices: [7] })],
  [chunk({ content: 7 })],
  [chunk({ content: [{ type: 'text', text: 'x' }] })],
  [chunk({ reasoning_content: {} })],
  [call({ index: 0, id: 'a', function: { name: 'f', arguments: { a: 1 } } })],
  [chunk({ tool_calls: ['f'] })],
  [chunk({ tool_calls: [{ index: 0, function: { arguments: '{}' } }] }, 'tool_calls')],
])('a frame that contradicts the format is a broken answer (%#)', (broken) => {
  expect(() => createChatReader().read(broken)).toThrow(BrokenAnswer)
})

test('a call that goes on after it was complete is a broken answer', () => {
  const whole = { index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }
  const more = { index: 0, function: { arguments: '{}' } }
  expect(() => outline(call(whole), chunk({ content: 'x' }), call(more))).toThrow(BrokenAnswer)
})

test.each([
  [{ error: { message: 'Busy.', type: 'rate_limit_error' } }, 'overloaded', ': Busy.'],
  [{ error: { message: 'Busy.', code: 429 } }, 'overloaded', ': Busy.'],
  [{ error: { message: 'Slow.', type: 'timeout' } }, 'upstream_timeout', ': Slow.'],
  [{ error: { message: 'Odd.', type: 'server_error', code: null } }, 'upstream_error', ': Odd.'],
  [{ error: 'Just words.' }, 'upstream_error', ': Just words.'],
  [{ error: true }, 'upstream_error', '.'],
  [{ error: { message: 'Long.', type: 'invalid_request_error' } }, 'upstream_rejected', ': Long.'],
])('%j in a stream is %s', (body, code, words) => {
  expect(() => createChatReader().read(source(body))).toThrow(`The model provider failed${words}`)
  const failure = readAll([source(body)]).failure
  expect((failure as ApiError).code).toBe(code)
})

test('an event named error is a failure', () => {
  const frame = { ...source({ message: 'Gone.' }), event: 'error' }
  expect(() => createChatReader().read(frame)).toThrow('The model provider failed: Gone.')
})

test('a long complaint is cut', () => {
  const frame = source({ error: { message: 'x'.repeat(1000) } })
  expect((readAll([frame]).failure as ApiError).message).toHaveLength(300)
})

test.each([
  [
    { error: { message: 'Bad.', type: 'invalid_request_error', code: 'bad' } },
    { message: 'Bad.', type: 'invalid_request_error', code: 'bad' },
  ],
  [{ error: { message: 'Bad.', code: 400 } }, { message: 'Bad.', type: null, code: '400' }],
  [{ error: 'Bad.' }, { message: 'Bad.', type: null, code: null }],
  [{ detail: 'Bad.' }, { message: 'Bad.', type: null, code: null }],
  [{ error: {} }, null],
  [{}, null],
])('the refusal %j is read as %j', (body, complaint) => {
  expect(readChatError(body)).toEqual(complaint)
})

test('a second choice is a broken answer, whatever its number; a second piece of the first is read', () => {
  const said = (index: unknown, content: string) => ({ index, delta: { content } })
  const both = (...choices: Json[]) => outline(source({ id: 'c1', choices }), finish)
  for (const index of [1, -1, '0']) {
    expect(() => both(said(0, 'a'), said(index, 'b'))).toThrow(BrokenAnswer)
  }
  expect(both(said(0, 'a'), said(0, 'b'))).toEqual(both(said(0, 'ab')))
})
