import { expect, test } from 'vitest'

import { type Json, noUsage, type OutFrame, type SourceFrame } from '#formats/answer.ts'

import { chatCallerFormat } from './chat-completion-format.ts'
import {
  answering,
  credits,
  endOfStream,
  readAll,
  receipt,
  source,
} from './testing/golden-streams.ts'

const withUsage = { stream: true, stream_options: { include_usage: true } }
const withoutUsage = { stream: true }

const chunk = (delta: Json, finish_reason: string | null = null, more: Json = {}) =>
  source({ id: 'c1', model: 'm', choices: [{ index: 0, delta, finish_reason }], ...more })
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, odd: { kept: true } }
const usageChunk = source({ id: 'c1', model: 'm', choices: [], usage, fingerprint: 'f' })
const hi = chunk({ content: 'Hi' })
const stop = chunk({}, 'stop')

function pass(sources: SourceFrame[], request: Json) {
  const writer = chatCallerFormat.createPassThrough(answering(request))
  const frames = readAll(sources).frames.flatMap((frame) => writer.write(frame))
  return { frames, closing: writer.close(receipt), writer }
}
const asIs = ({ json, bytes }: SourceFrame): OutFrame => ({ event: null, data: json, bytes })
const edited = (data: Json | '[DONE]'): OutFrame => ({ event: null, data, bytes: null })

test('a caller who asked for usage gets the upstream’s own chunk with the credits in it', () => {
  const { frames, closing } = pass([hi, stop, usageChunk], withUsage)
  expect(frames).toEqual([asIs(hi)])
  expect(closing).toEqual([
    asIs(stop),
    edited({ ...usageChunk.json, ...credits }),
    edited('[DONE]'),
  ])
})

test('a caller who did not ask gets no usage, and the credits beside the finish reason', () => {
  const { frames, closing } = pass([hi, stop, usageChunk], withoutUsage)
  expect(frames).toEqual([asIs(hi)])
  expect(closing).toEqual([edited({ ...stop.json, ...credits }), edited('[DONE]')])
})

test('usage that came with the finish reason is moved to a chunk of its own', () => {
  const { closing } = pass([hi, chunk({}, 'stop', { usage })], withUsage)
  expect(closing).toEqual([
    edited({ ...stop.json, usage: null }),
    edited({ id: 'c1', model: 'm', choices: [], usage, ...credits }),
    edited('[DONE]'),
  ])
})

test('where the upstream reports no usage, a usage chunk is still written', () => {
  const { closing } = pass([hi, stop], withUsage)
  expect(closing[1]?.data).toMatchObject({ choices: [], usage: { total_tokens: 0 }, ...credits })
})

test('the usage of the whole answer is used where no chunk has any', () => {
  const writer = chatCallerFormat.createPassThrough(answering(withUsage))
  const figures = { inputTokens: 8, outputTokens: 1, cachedInputTokens: 0, cacheWriteTokens: 0 }
  const known = { ...figures, reasoningTokens: 0 }
  writer.write({
    events: [{ type: 'finished', reason: 'end', stopSequence: null, usage: known }],
    source: stop,
  })
  expect(writer.close(receipt)[1]?.data).toMatchObject({ usage: { prompt_tokens: 8 } })
})

test('chunks and members that we do not know survive', () => {
  const unknown = source({ object: 'a.new.thing', choices: [], note: 1 })
  const named = { ...chunk({ content: '!', odd: [1] }), event: 'message' }
  const { frames } = pass([unknown, named, stop], withoutUsage)
  expect(frames).toEqual([asIs(unknown), { ...asIs(named), event: 'message' }])
})

test('chunks between the finish reason and the end keep their place', () => {
  const late = source({ id: 'c1', choices: [{ index: 0, delta: {}, offsets: { at: 1 } }] })
  const { frames, closing } = pass([hi, stop, late, usageChunk], withoutUsage)
  expect(frames).toEqual([asIs(hi)])
  expect(closing).toEqual([edited({ ...stop.json, ...credits }), asIs(late), edited('[DONE]')])
})

test('nothing is passed on after the end', () => {
  const writer = chatCallerFormat.createPassThrough(answering(withoutUsage))
  const write = (one: SourceFrame) => writer.write({ events: [], source: one })
  expect([stop, endOfStream, hi].flatMap(write)).toEqual([])
  expect(writer.close(receipt)).toEqual([edited({ ...stop.json, ...credits }), edited('[DONE]')])
  expect(write(hi)).toEqual([])
})

test('a plain answer has usage, also where the caller did not ask for it', () => {
  const { frames, closing } = pass([hi, stop, usageChunk], { stream_options: null })
  expect(chatCallerFormat.fold([...frames, ...closing])).toMatchObject({ usage, ...credits })
})

test('a member called __proto__ cannot change what objects are', () => {
  const delta = '{"__proto__":{"a":1},"audio":{"__proto__":{"a":1},"constructor":{"a":1}}}'
  const evil = `{"__proto__":{"a":1},"choices":[{"__proto__":{"a":1},"delta":${delta}}]}`
  const { frames, closing } = pass([source(JSON.parse(evil) as Json), hi, stop], {})
  const body = chatCallerFormat.fold([...frames, ...closing]) as { choices: [{ message: Json }] }
  const [choice] = body.choices
  for (const one of [{}, body, choice, choice.message, choice.message['audio']]) {
    expect(Object.getPrototypeOf(one)).toBe(Object.prototype)
    expect(one).not.toHaveProperty('a')
  }
})

test('a member that a later chunk leaves empty keeps its value', () => {
  const last = source({ id: '', created: 0, model: null, choices: [], usage })
  const { frames, closing } = pass([chunk({}, null, { created: 9 }), stop, last], {})
  expect(chatCallerFormat.fold([...frames, ...closing])).toMatchObject({
    id: 'c1',
    created: 9,
    model: 'm',
  })
})

test('members that upstreams repeat in every chunk of a call are folded once', () => {
  const piece = (text: string) =>
    chunk({
      tool_calls: [
        { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: text } },
      ],
    })
  const { frames, closing } = pass([piece('{"a"'), piece(':1}'), stop], {})
  expect(chatCallerFormat.fold([...frames, ...closing])).toMatchObject({
    choices: [
      {
        message: {
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
          ],
        },
      },
    ],
  })
})

test('a whole message counts where there are no deltas, and an empty finish reason does not', () => {
  const whole = source({ choices: [{ message: { content: 'Hi' }, finish_reason: 'length' }] })
  const folded = (...sources: SourceFrame[]) => {
    const { frames, closing } = pass(sources, {})
    return chatCallerFormat.fold([...frames, ...closing])
  }
  const expected = { choices: [{ message: { content: 'Hi' }, finish_reason: 'length' }] }
  expect(folded(whole)).toMatchObject(expected)
  expect(folded(chunk({ content: 'Hi' }, ''), whole)).toMatchObject(expected)
})

test('folding leaves the frames as they were', () => {
  const call = { index: 0, id: 'a', function: { name: 'f', arguments: '{' } }
  const more = { index: 0, function: { arguments: '}' } }
  const { frames, closing } = pass(
    [chunk({ tool_calls: [call] }), chunk({ tool_calls: [more] }), stop],
    {},
  )
  const before = JSON.stringify(frames)
  const once = chatCallerFormat.fold([...frames, ...closing])
  expect(JSON.stringify(frames)).toBe(before)
  expect(chatCallerFormat.fold([...frames, ...closing])).toEqual(once)
})

test('usage that was counted here stands in place of the upstream’s, and only once', () => {
  const counted = { ...noUsage, inputTokens: 90, outputTokens: 4 }
  const both = chunk({}, 'stop', { usage })
  for (const sources of [
    [hi, stop, usageChunk],
    [hi, both],
    [hi, both, usageChunk],
    [hi, stop],
  ]) {
    for (const create of [chatCallerFormat.createPassThrough, chatCallerFormat.createWriter]) {
      const writer = create(answering(withUsage))
      for (const frame of readAll(sources).frames) writer.write(frame)
      const closing = writer.close({ ...receipt, usage: counted }).map(({ data }) => data as Json)
      expect(closing.flatMap((data) => data['usage'] ?? [])).toEqual([
        expect.objectContaining({ prompt_tokens: 90, completion_tokens: 4, total_tokens: 94 }),
      ])
    }
  }
})
