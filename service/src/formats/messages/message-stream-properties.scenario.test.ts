import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { AnswerEvent, Frame, Json, Usage } from '#formats/answer.ts'
import { toSse } from '#formats/sse.ts'
import { cutAt, parseStream } from '#formats/testing/parse-stream.ts'

import { messageCallerFormat } from './message-format.ts'
import {
  answering,
  bytesOf,
  eventsOf,
  expectedOf,
  readAll,
  wholeStreams,
  writeAll,
} from './testing/golden-streams.ts'

test('however a stream is cut, its frames, its meaning and what we make of it stay the same', () => {
  const streams = fc.constantFrom(...wholeStreams)
  const places = fc.array(fc.nat(), { maxLength: 30 })
  fc.assert(
    fc.property(streams, places, (name, chosen) => {
      const whole = parseStream([bytesOf(name)])
      const frames = readAll(parseStream(cutAt(bytesOf(name), chosen)))
      expect(frames.map(({ source }) => source)).toEqual(whole)
      expect(eventsOf(frames)).toEqual(expectedOf(name).events)
      const passed = writeAll(messageCallerFormat.createPassThrough(answering), frames)
      expect(messageCallerFormat.fold(passed)).toEqual(expectedOf(name).body)
    }),
    { numRuns: 200 },
  )
})

test('a stream may also come byte by byte', () => {
  const bytes = bytesOf('unicode')
  const pieces = Array.from(bytes, (_byte, at) => bytes.subarray(at, at + 1))
  expect(eventsOf(readAll(parseStream(pieces)))).toEqual(expectedOf('unicode').events)
})

type Planned = {
  block: Json & { type: string }
  texts: readonly string[]
  seal: string | null
  kind: string
}

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
const tokens = fc.nat({ max: 100_000 })

const plannedText: fc.Arbitrary<Planned> = fc.record({
  block: fc.constant({ type: 'text' }),
  texts: fc.array(text, { maxLength: 5 }),
  seal: fc.constant(null),
  kind: fc.constant(''),
})
const plannedReasoning: fc.Arbitrary<Planned> = fc.oneof(
  fc.record({
    block: fc.constant({ type: 'reasoning' }),
    texts: fc.array(text, { maxLength: 5 }),
    seal: fc.option(text),
    kind: fc.constant('signature'),
  }),
  fc.record({
    block: fc.constant({ type: 'reasoning' }),
    texts: fc.constant([]),
    seal: text,
    kind: fc.constant('redacted'),
  }),
)
const plannedCall: fc.Arbitrary<Planned> = fc
  .record({
    block: fc.record({ type: fc.constant('tool_call'), id: text, name: text }),
    input: fc.dictionary(text, fc.jsonValue(), { maxKeys: 3 }),
    pieces: fc.integer({ min: 1, max: 7 }),
  })
  .map(({ block, input, pieces }) => {
    const json = JSON.stringify(input)
    const texts = json.match(new RegExp(`[^]{1,${pieces}}`, 'g')) ?? []
    return { block, texts, seal: null, kind: '' }
  })

const usage: fc.Arbitrary<Usage> = fc
  .tuple(tokens, tokens, tokens, tokens, tokens)
  .map(([fresh, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens]) => ({
    inputTokens: fresh + cachedInputTokens + cacheWriteTokens,
    outputTokens,
    cachedInputTokens,
    cacheWriteTokens,
    reasoningTokens,
  }))

function eventsOfBlock({ block, texts, seal, kind }: Planned, index: number): AnswerEvent[] {
  const opaque = { origin: 'messages', kind, data: seal, id: null }
  return [
    { type: 'block_started', index, block },
    ...texts.map((piece) => ({ type: 'block_delta', index, text: piece })),
    ...(seal === null ? [] : [{ type: 'block_sealed', index, opaque }]),
    { type: 'block_ended', index },
  ] as AnswerEvent[]
}

/** Deals the events of all blocks out so that blocks overlap but start in their order. */
function interleaved(blocks: readonly AnswerEvent[][], choices: readonly number[]): AnswerEvent[] {
  const rest = blocks.map((events) => [...events])
  const dealt: AnswerEvent[] = []
  let started = 0
  for (let turn = 0; rest.some((events) => events.length > 0); turn++) {
    const open = rest.slice(0, started + 1).filter((events) => events.length > 0)
    const [event] = open[(choices[turn % choices.length] ?? 0) % open.length]!.splice(0, 1)
    if (event?.type === 'block_started') started += 1
    dealt.push(event!)
  }
  return dealt
}

const source = { event: '', data: '', bytes: Buffer.alloc(0), json: {} }
const answer = fc.record({
  blocks: fc.array(fc.oneof(plannedText, plannedReasoning, plannedCall), { maxLength: 6 }),
  choices: fc.array(fc.nat({ max: 50 }), { minLength: 1, maxLength: 30 }),
  usage,
  stop: fc.constantFrom('max_tokens', 'stop_sequence', 'tool_call', 'refusal', 'pause'),
})

test('any answer, with blocks that overlap, comes back block by block, and folds to its sum', () => {
  fc.assert(
    fc.property(answer, ({ blocks, choices, usage: counted, stop }) => {
      const planned = blocks.map(eventsOfBlock)
      const finished = { type: 'finished', reason: stop, stopSequence: null, usage: counted }
      const started = { type: 'started', id: 'x', model: 'y', usage: counted }
      const events = [started, ...interleaved(planned, choices), finished] as AnswerEvent[]
      const frames: Frame[] = events.map((event) => ({ events: [event], source }))
      const out = writeAll(messageCallerFormat.createWriter(answering), frames)

      const bytes = Buffer.concat(out.map((frame) => Buffer.from(toSse(frame))))
      const [, ...back] = eventsOf(readAll(parseStream([bytes])))
      expect(joined(back)).toEqual(joined([...planned.flat(), finished] as AnswerEvent[]))
      const content = JSON.stringify(messageCallerFormat.fold(out)['content'])
      expect(JSON.parse(content)).toEqual(blocks.map(contentOf))
    }),
    { numRuns: 500 },
  )
})

/** Pieces of a block that had to wait may come as one. */
function joined(events: readonly AnswerEvent[]): AnswerEvent[] {
  const whole: AnswerEvent[] = []
  for (const event of events) {
    const last = whole.at(-1)
    const goesOn = last?.type === 'block_delta' && event.type === 'block_delta'
    if (goesOn) whole.splice(-1, 1, { ...last, text: last.text + event.text })
    else whole.push(event)
  }
  return whole
}

function contentOf({ block, texts, seal, kind }: Planned): Json {
  const whole = texts.join('')
  if (block.type === 'text') return { type: 'text', text: whole }
  if (kind === 'redacted') return { type: 'redacted_thinking', data: seal }
  if (block.type === 'reasoning') {
    return { type: 'thinking', thinking: whole, signature: seal ?? '' }
  }
  return { ...block, type: 'tool_use', input: JSON.parse(whole) as Json }
}
