import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { AnswerEvent, Frame, Json, OutFrame, SourceFrame } from '#formats/answer.ts'
import { goldens } from '#formats/chat-completions/testing/golden-streams.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { callerFormats, upstreamFormats } from '#formats/formats.ts'
import { bytesOf, wholeStreams } from '#formats/messages/testing/golden-streams.ts'
import { RepeatedFrame } from '#formats/repeated-frame.ts'
import { finishedStreams } from '#formats/responses/testing/golden-streams.ts'
import { toSse } from '#formats/sse.ts'
import { parseStream } from '#formats/testing/parse-stream.ts'
import { toEvents } from '#formats/testing/said-events.ts'

import { collectTexts } from './testing/collect-texts.ts'

// Rules judge the same texts, whether an answer is streamed or plain, and however it is cut.

const names = ['messages', 'responses', 'chat_completions'] as const
const receipt = { remainingCredits: 900, creditsUsed: 7, costUsd: 0.0007, usage: null }
const answering = {
  requestId: 'req_0123456789abcdefghjkmnpq',
  model: 'their-name',
  createdAt: new Date(0),
  inputTokens: 42,
  request: {},
}
const endOfStream: SourceFrame = { event: '', data: '[DONE]', json: {}, bytes: Buffer.alloc(0) }

const upstreamOf = (format: CallerFormatName) => upstreamFormats.get(format)!

function streamedTexts(format: CallerFormatName, sources: readonly SourceFrame[]) {
  const reader = upstreamOf(format).createTextReader()
  return collectTexts(sources.map((source) => reader.read({ events: [], source })))
}

const plainTexts = (format: CallerFormatName, body: Json) =>
  collectTexts([upstreamOf(format).createTextReader().readPlain(body)])

/** Without the names of the channels, and each once: frames repeat what is no delta. */
const wordsOf = (texts: ReadonlyMap<string, string>) => new Set(texts.values())

const recorded = [
  ...wholeStreams.map((name) => ({ name, format: 'messages' as const, bytes: bytesOf(name) })),
  ...finishedStreams.map(({ name, bytes }) => ({ name, format: 'responses' as const, bytes })),
  ...goldens.flatMap(({ name, body, bytes }) =>
    body ? [{ name, format: 'chat_completions' as const, bytes }] : [],
  ),
]

test.each(recorded)('$format, $name: the stream has the texts of its fold', ({ format, bytes }) => {
  const sources = parseStream([bytes])
  const { createPassThrough, fold } = callerFormats[format]
  const reader = upstreamOf(format).createReader()
  const writer = createPassThrough(answering)
  const frames: Frame[] = [...sources, endOfStream]
    .filter(() => !reader.isFinished())
    .map((source) => ({ events: reader.read(source), source }))
  const body = fold([...frames.flatMap((frame) => writer.write(frame)), ...writer.close(receipt)])
  expect(wordsOf(streamedTexts(format, sources))).toEqual(wordsOf(plainTexts(format, body)))
})

const piece = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
const prose = fc.record({
  type: fc.constantFrom('text', 'refusal', 'reasoning'),
  pieces: fc.array(piece, { maxLength: 4 }),
})
const call = fc
  .tuple(
    fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { noNullPrototype: true }),
    fc.array(fc.nat(), { maxLength: 6 }),
  )
  .map(([input, places]) => ({ type: 'tool_call', pieces: cut(JSON.stringify(input), places) }))

function cut(text: string, places: readonly number[]): string[] {
  const ends = [...new Set([...places.map((place) => place % text.length), text.length])]
  return ends
    .toSorted((one, other) => one - other)
    .map((end, position, all) => text.slice(all[position - 1] ?? 0, end))
    .filter((part) => part !== '')
}

/** Texts that no delta brings stand for themselves in each frame. */
const channelsOf = (texts: ReadonlyMap<string, string>) =>
  Object.fromEntries([...texts].filter(([channel]) => !channel.startsWith('other')))

const answers = fc.array(fc.oneof(prose, call), { maxLength: 6 })

function write(format: CallerFormatName, said: Parameters<typeof toEvents>[0]): OutFrame[] {
  const writer = callerFormats[format].createWriter(answering)
  const frames = toEvents(said).flatMap((event) =>
    writer.write({ events: [event], source: endOfStream }),
  )
  return [...frames, ...writer.close(receipt)]
}

const toSources = (out: readonly OutFrame[]) =>
  parseStream(out.map((frame) => Buffer.from(toSse(frame))))

test.each(names)('%s: every channel of a stream has the text of the plain answer', (format) => {
  fc.assert(
    fc.property(answers, (said) => {
      const out = write(format, said)
      const streamed = streamedTexts(format, toSources(out))
      const plain = plainTexts(format, callerFormats[format].fold(out))
      expect(channelsOf(streamed)).toEqual(channelsOf(plain))
      expect(wordsOf(streamed)).toEqual(wordsOf(plain))
    }),
    { numRuns: 300 },
  )
})

/** Frames as they come from an upstream: one that repeats the frame before is not parsed. */
function toFrames(format: CallerFormatName, sources: readonly SourceFrame[]): Frame[] {
  const reader = upstreamOf(format).createReader()
  const repeated = new RepeatedFrame()
  return sources.map((source) => {
    const text = repeated.textOf(source)
    if (text !== undefined) {
      const events: AnswerEvent[] = [{ type: 'block_delta', index: 0, text }]
      return { events, source: { ...source, json: {} }, isRepeated: true }
    }
    const events = reader.read(source)
    const [first] = events
    const isOnly = events.length === 1 && first?.type === 'block_delta'
    if (isOnly && reader.isRepeatable?.(first)) repeated.learn(source, first.text)
    else repeated.forget()
    return { events, source }
  })
}

test.each(names)('%s: frames that are not parsed have the same texts', (format) => {
  let repeatedCount = 0
  fc.assert(
    fc.property(answers, (said) => {
      const sources = toSources(write(format, said))
      const frames = toFrames(format, sources)
      repeatedCount += frames.filter(({ isRepeated }) => isRepeated).length
      const [asTheyCome, parsed] = [frames, sources.map((source) => ({ events: [], source }))].map(
        (all: readonly Frame[]) => {
          const reader = upstreamOf(format).createTextReader()
          return all.map((frame) => reader.read(frame))
        },
      )
      expect(asTheyCome).toEqual(parsed)
    }),
    { numRuns: 300 },
  )
  expect(repeatedCount > 0).toBe(format !== 'responses')
})
