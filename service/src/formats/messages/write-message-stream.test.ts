import { expect, test } from 'vitest'

import { type AnswerEvent, type Block, noUsage, type StopReason } from '#formats/answer.ts'
import { unpackOpaqueState } from '#formats/opaque-state.ts'
import type { OpaqueState } from '#formats/turn.ts'

import { messageCallerFormat } from './message-format.ts'
import { answering, receipt } from './testing/golden-streams.ts'

const source = { event: '', data: '', bytes: Buffer.alloc(0), json: {} }
const started: AnswerEvent = { type: 'started', id: 'x', model: 'y', usage: noUsage }
const finished = (reason: StopReason): AnswerEvent => ({
  type: 'finished',
  reason,
  stopSequence: null,
  usage: noUsage,
})
const opening = (index: number, block: Block): AnswerEvent => ({
  type: 'block_started',
  index,
  block,
})
const delta = (index: number, text: string): AnswerEvent => ({ type: 'block_delta', index, text })
const ending = (index: number): AnswerEvent => ({ type: 'block_ended', index })
const call = (id: string): Block => ({ type: 'tool_call', id, name: 'f' })

function write(...events: AnswerEvent[]) {
  const writer = messageCallerFormat.createWriter(answering)
  const frames = writer.write({ events: [started, ...events], source })
  return [...frames, ...writer.close(receipt)]
}

test('every frame names its kind on the event line and in its data, and the first is ours', () => {
  const frames = write(opening(0, { type: 'text' }), delta(0, 'a'), ending(0), finished('end'))
  const names = frames.map(({ event }) => event)
  expect(names).toEqual([
    'message_start',
    'ping',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
  expect(frames.map(({ data }) => (data as { type: string }).type)).toEqual(names)
  expect(frames[0]?.data).toEqual({
    type: 'message_start',
    message: {
      id: 'msg_0123456789abcdefghjkmnpq',
      type: 'message',
      role: 'assistant',
      model: 'our-model',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: 42,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 0,
      },
    },
  })
})

test('nothing that closes the stream is written before the receipt', () => {
  const writer = messageCallerFormat.createWriter(answering)
  expect(writer.write({ events: [finished('end')], source })).toEqual([])
})

test('a later block waits until the open one ends, then goes on as it comes', () => {
  const writer = messageCallerFormat.createWriter(answering)
  const step = (...events: AnswerEvent[]) =>
    writer
      .write({ events, source })
      .map(({ event, data }) => `${event} ${(data as { index: number }).index}`)
  expect(step(opening(0, call('a')))).toEqual(['content_block_start 0'])
  expect(step(opening(1, call('b')), delta(1, '{'))).toEqual([])
  expect(step(delta(0, '{}'))).toEqual(['content_block_delta 0'])
  expect(step(ending(0))).toEqual([
    'content_block_stop 0',
    'content_block_start 1',
    'content_block_delta 1',
  ])
  expect(step(delta(1, '}'))).toEqual(['content_block_delta 1'])
  expect(step(ending(1))).toEqual(['content_block_stop 1'])
})

const encrypted: OpaqueState = { origin: 'responses', kind: 'encrypted', data: 'abc', id: 'rs_1' }
const reasoned = (text: string, opaque: OpaqueState) =>
  messageCallerFormat.fold(
    write(
      opening(0, { type: 'reasoning' }),
      delta(0, text),
      { type: 'block_sealed', index: 0, opaque },
      ending(0),
      finished('end'),
    ),
  )['content'] as [Record<string, string>]

test("another format's state is packed, and comes back whole in the caller's next request", () => {
  const [withText] = reasoned('hm', encrypted)
  expect(withText).toMatchObject({ type: 'thinking', thinking: 'hm' })
  expect(unpackOpaqueState(withText['signature']!)).toEqual(encrypted)
  const [without] = reasoned('', encrypted)
  expect(without['type']).toBe('redacted_thinking')

  const content = [withText, without]
  const turn = messageCallerFormat.readTurn({
    model: 'm',
    messages: [{ role: 'assistant', content }],
  })
  expect(turn.messages[0]?.parts).toEqual([
    { type: 'reasoning', text: 'hm', opaque: encrypted },
    { type: 'reasoning', text: '', opaque: encrypted },
  ])
})

test('a signature stands just before the end of its block', () => {
  const opaque: OpaqueState = { origin: 'messages', kind: 'signature', data: 'sig', id: null }
  const frames = write(
    opening(0, { type: 'reasoning' }),
    delta(0, 'hm'),
    { type: 'block_sealed', index: 0, opaque },
    ending(0),
    finished('end'),
  )
  const at = frames.findIndex(({ event }) => event === 'content_block_stop')
  expect(frames[at - 1]?.data).toMatchObject({
    delta: { type: 'signature_delta', signature: 'sig' },
  })
})

test('reasoning without text and seal is an empty thinking block', () => {
  const frames = write(opening(0, { type: 'reasoning' }), ending(0), finished('end'))
  expect(messageCallerFormat.fold(frames)['content']).toEqual([
    { type: 'thinking', thinking: '', signature: '' },
  ])
})

test.each([
  ['end', 'text', 'end_turn'],
  ['end', 'tool_call', 'tool_use'],
  ['end', 'refusal', 'refusal'],
  ['max_tokens', 'tool_call', 'max_tokens'],
  ['stop_sequence', 'text', 'stop_sequence'],
  ['content_filter', 'text', 'refusal'],
  ['pause', 'text', 'pause_turn'],
] as const)('%s after a %s block is %s', (reason, type, expected) => {
  const block: Block = type === 'tool_call' ? call('a') : { type }
  const body = messageCallerFormat.fold(write(opening(0, block), ending(0), finished(reason)))
  expect(body['stop_reason']).toBe(expected)
})

test('a refusal is told as text', () => {
  const frames = write(opening(0, { type: 'refusal' }), delta(0, 'No.'), ending(0), finished('end'))
  expect(messageCallerFormat.fold(frames)['content']).toEqual([{ type: 'text', text: 'No.' }])
})
