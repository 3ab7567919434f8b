import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { AnswerEvent, Frame, OutFrame, StopReason, Usage } from '#formats/answer.ts'
import { cutAt, parseStream } from '#formats/testing/parse-stream.ts'
import type { OpaqueState } from '#formats/turn.ts'

import { chatCallerFormat } from './chat-completion-format.ts'
import {
  answering,
  asSources,
  endOfStream,
  eventsOf,
  goldens,
  outlineOf,
  readAll,
  receipt,
} from './testing/golden-streams.ts'

const { createPassThrough, createWriter, fold } = chatCallerFormat

test('the pieces in which the bytes arrive change nothing', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...goldens),
      fc.array(fc.nat(), { maxLength: 40 }),
      ({ bytes }, places) => {
        const whole = readAll(parseStream([bytes]))
        const pieces = readAll(parseStream(cutAt(bytes, places)))
        expect(pieces).toEqual(whole)
        const write = (frames: Frame[]) => {
          const writer = createPassThrough(answering({ stream: true }))
          return [...frames.flatMap((frame) => writer.write(frame)), ...writer.close(receipt)]
        }
        expect(write(pieces.frames)).toEqual(write(whole.frames))
      },
    ),
  )
})

type Said =
  | { type: 'text' | 'refusal'; pieces: string[] }
  | { type: 'reasoning'; pieces: string[]; opaque: OpaqueState }
  | { type: 'tool_call'; name: string; pieces: string[] }

const piece = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
const pieces = fc.array(piece, { minLength: 1, maxLength: 4 })
const opaque: fc.Arbitrary<OpaqueState> = fc.record({
  origin: fc.constantFrom('messages', 'responses'),
  kind: fc.constantFrom('signature', 'redacted', 'encrypted'),
  data: fc.string({ unit: 'grapheme' }),
  id: fc.option(fc.string()),
})
const argumentPieces = fc
  .tuple(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })), fc.nat({ max: 30 }))
  .map(([value, at]) => {
    const json = JSON.stringify(value)
    return [json.slice(0, at), json.slice(at)].filter((part) => part !== '')
  })

const block: fc.Arbitrary<Said> = fc.oneof(
  fc.record({ type: fc.constantFrom('text' as const, 'refusal' as const), pieces }),
  // Opaque state may come without any text.
  fc.record({
    type: fc.constant('reasoning' as const),
    pieces: fc.array(piece, { maxLength: 3 }),
    opaque,
  }),
  fc.record({ type: fc.constant('tool_call' as const), name: piece, pieces: argumentPieces }),
)

/** Prose of one kind that stands together is one text here, so two such blocks would become one. */
const isSeparate = (one: Said, position: number, all: readonly Said[]) =>
  one.type === 'tool_call' || one.type === 'reasoning' || all[position - 1]?.type !== one.type

type Answer = { said: Said[]; reason: StopReason; usage: Usage }

const answer: fc.Arbitrary<Answer> = fc.record({
  said: fc.array(block, { maxLength: 8 }).map((blocks) => blocks.filter(isSeparate)),
  reason: fc.constantFrom<StopReason>('end', 'max_tokens', 'tool_call', 'content_filter'),
  usage: fc.record({
    inputTokens: fc.nat({ max: 100_000_000 }),
    outputTokens: fc.nat({ max: 100_000_000 }),
    cachedInputTokens: fc.nat({ max: 100_000_000 }),
    cacheWriteTokens: fc.nat({ max: 100_000_000 }),
    reasoningTokens: fc.nat({ max: 100_000_000 }),
  }),
})

function toEvents({ said, reason, usage }: Answer): AnswerEvent[] {
  const blocks = said.flatMap((one, index): AnswerEvent[] => [
    {
      type: 'block_started',
      index,
      block: one.type === 'tool_call' ? { ...one, id: `call_${index}` } : { type: one.type },
    },
    ...one.pieces.map((text): AnswerEvent => ({ type: 'block_delta', index, text })),
    ...('opaque' in one ? [{ type: 'block_sealed' as const, index, opaque: one.opaque }] : []),
    { type: 'block_ended', index },
  ])
  const hasCalls = said.some(({ type }) => type === 'tool_call')
  const hasRefusal = said.some(({ type }) => type === 'refusal')
  // An ordinary end says here what came before it.
  const end = hasCalls ? 'tool_call' : hasRefusal ? 'refusal' : 'end'
  return [
    { type: 'started', id: 'upstream', model: 'theirs', usage },
    ...blocks,
    { type: 'finished', reason: reason === 'end' ? end : reason, stopSequence: null, usage },
  ]
}

function write(events: readonly AnswerEvent[]): OutFrame[] {
  const writer = createWriter(answering())
  const frames = events.map((event) => ({ events: [event], source: endOfStream }))
  return [...frames.flatMap((frame) => writer.write(frame)), ...writer.close(receipt)]
}

test('an answer that is written and read again is the same', () => {
  fc.assert(
    fc.property(answer, (generated) => {
      const events = toEvents(generated)
      const { frames, failure } = readAll(asSources(write(events)))
      expect(failure).toBeUndefined()
      expect(outlineOf(eventsOf(frames)).slice(1)).toEqual(outlineOf(events).slice(1))
    }),
  )
})

test('a folded answer has all that was said, and its reasoning can be sent back whole', () => {
  fc.assert(
    fc.property(answer, (generated) => {
      const events = toEvents(generated)
      const body = fold(write(events)) as { choices: [{ message: Record<string, unknown> }] }
      const { message } = body.choices[0]
      const joined = (type: string) =>
        generated.said.flatMap((one) => (one.type === type ? one.pieces : [])).join('')
      expect(message['content'] ?? '').toBe(joined('text'))
      expect(message['refusal'] ?? '').toBe(joined('refusal'))
      const [read] = chatCallerFormat.readTurn({ messages: [message] }).messages
      const sealed = generated.said.filter((one) => one.type === 'reasoning')
      expect(read?.parts.filter((part) => part.type === 'reasoning')).toEqual(
        sealed.map((one) => ({
          type: 'reasoning',
          text: one.pieces.join(''),
          opaque: one.opaque,
        })),
      )
      const calls = generated.said.filter((one) => one.type === 'tool_call')
      expect(
        read?.parts.flatMap((part) =>
          part.type === 'tool_call' ? [part.name, part.arguments] : [],
        ),
      ).toEqual(calls.flatMap((one) => [one.name, one.pieces.join('')]))
    }),
  )
})
