import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { Frame, Json, OutFrame, Reader, StopReason, Usage } from './answer.ts'
import { goldens } from './chat-completions/testing/golden-streams.ts'
import type { CallerFormatName } from './format-name.ts'
import type { Answering, CallerFormat, UpstreamFormat } from './format.ts'
import { callerFormats, upstreamFormats } from './formats.ts'
import { bytesOf, wholeStreams } from './messages/testing/golden-streams.ts'
import { finishedStreams } from './responses/testing/golden-streams.ts'
import { toSse } from './sse.ts'
import { meaningOf, plainSource } from './testing/meaning-of.ts'
import { parseStream } from './testing/parse-stream.ts'
import { toEvents } from './testing/said-events.ts'

// A plain answer says what the stream of the same answer says, and travels on as its upstream wrote it.

const answering: Answering = {
  requestId: 'req_0123456789abcdefghjkmnpq',
  model: 'their-name',
  createdAt: new Date(1_800_000_000_999),
  inputTokens: 42,
  request: {},
}
const receipt = { remainingCredits: 900, creditsUsed: 7, costUsd: 0.0007, usage: null }
const credits = {
  remaining_credits: 900,
  estimated_credits_used: 7,
  estimated_cost_usd: 0.0007,
}

const names = ['messages', 'responses', 'chat_completions'] as const
const upstreamOf = (name: CallerFormatName) => {
  const format: UpstreamFormat = upstreamFormats.get(name)!
  const readPlain = (body: Json | string) => format.readPlain!(plainSource(body))
  return { createReader: format.createReader, readPlain }
}

const endOfStream = { event: '', data: '[DONE]', json: {}, bytes: Buffer.alloc(0) }

function readFrames(bytes: Buffer, reader: Reader): Frame[] {
  return [...parseStream([bytes]), endOfStream]
    .filter(() => !reader.isFinished())
    .map((source) => ({ events: reader.read(source), source }))
}

const eventsIn = (frames: readonly Frame[]) => frames.flatMap(({ events }) => events)

function foldAll(format: CallerFormat, frames: readonly Frame[]): Json {
  const writer = format.createPassThrough(answering)
  return format.fold([...frames.flatMap((frame) => writer.write(frame)), ...writer.close(receipt)])
}

type Recorded = { name: string; format: CallerFormatName; bytes: Buffer }

const recorded: Recorded[] = [
  ...wholeStreams.map((name) => ({ name, format: 'messages' as const, bytes: bytesOf(name) })),
  ...goldens.flatMap(({ name, body, bytes }) =>
    body ? [{ name, format: 'chat_completions' as const, bytes }] : [],
  ),
  ...finishedStreams.map(({ name, bytes }) => ({ name, format: 'responses' as const, bytes })),
]

test.each(recorded)('$format, $name: a fold of the stream reads like the stream', (stream) => {
  const { createReader, readPlain } = upstreamOf(stream.format)
  const frames = readFrames(stream.bytes, createReader())
  const body = foldAll(callerFormats[stream.format], frames)
  expect(meaningOf(readPlain(body).events)).toEqual(meaningOf(eventsIn(frames)))
})

test.each(recorded)('$format, $name: only the receipt is added to a plain answer', (stream) => {
  const format = callerFormats[stream.format]
  const frames = readFrames(stream.bytes, upstreamOf(stream.format).createReader())
  const folded = foldAll(format, frames)
  const body = Object.fromEntries(
    Object.entries(folded).filter(([name]) => !Object.hasOwn(credits, name)),
  )
  const text = JSON.stringify(body, null, 2)
  const settled = format.settlePlain(plainSource(`${text}\n`), receipt)
  expect(settled.startsWith(text.slice(0, -2))).toBe(true)
  expect(JSON.parse(settled)).toEqual({ ...body, ...credits })
})

const piece = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
const block = fc.oneof(
  fc.record({ type: fc.constantFrom('text', 'refusal', 'reasoning'), pieces: fc.array(piece) }),
  fc.record({
    type: fc.constant('tool_call'),
    pieces: fc
      .dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }))
      .map((value) => [JSON.stringify(value)]),
  }),
)
const tokens = fc.nat({ max: 100_000 })
const answers = fc.record({
  said: fc.array(block, { maxLength: 6 }),
  reason: fc.constantFrom<StopReason>('end', 'max_tokens', 'tool_call', 'content_filter'),
  usage: fc.record({
    inputTokens: tokens.map((count) => count + 100_000),
    outputTokens: tokens,
    cachedInputTokens: fc.nat({ max: 50_000 }),
    cacheWriteTokens: fc.nat({ max: 50_000 }),
    reasoningTokens: tokens,
  }),
})

test.each(names)('%s: any answer means the same streamed and plain', (name) => {
  const { createReader, readPlain } = upstreamOf(name)
  const { createWriter, fold } = callerFormats[name]
  fc.assert(
    fc.property(answers, ({ said, reason, usage }) => {
      const writer = createWriter(answering)
      const events = toEvents(said, { reason, usage })
      const out: OutFrame[] = [
        ...writer.write({ events, source: endOfStream }),
        ...writer.close(receipt),
      ]
      const bytes = Buffer.concat(out.map((frame) => Buffer.from(toSse(frame))))
      const streamed = meaningOf(eventsIn(readFrames(bytes, createReader())))
      expect(meaningOf(readPlain(fold(out)).events)).toEqual(streamed)
    }),
  )
})

/** The smallest answers, each with one word. */
const small: Record<CallerFormatName, Json> = {
  messages: {
    id: 'a',
    content: [{ type: 'text', text: 'Hi' }],
    usage: {
      input_tokens: 1,
      output_tokens: 1,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    },
  },
  responses: {
    id: 'a',
    output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }],
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  chat_completions: {
    id: 'a',
    choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  },
}

test.each(names)('%s: a receipt of another Gatehouse and a usage are replaced', (name) => {
  const { settlePlain } = callerFormats[name]
  const id = '{"id":12345678901234567890,'
  const text = JSON.stringify({ ...small[name], estimated_credits_used: 99 })
  const source = plainSource(id + text.slice(1).replace('"id":"a",', ''))
  const settled = settlePlain(source, receipt)
  expect(settled.startsWith(id)).toBe(true)
  expect(settled.match(/estimated_credits_used/g)).toHaveLength(1)
  expect(JSON.parse(settled)).toMatchObject(credits)
  const counted = { ...receipt, usage: { ...usageOf(7), outputTokens: 9 } }
  const { usage } = JSON.parse(settlePlain(source, counted)) as { usage: Json }
  expect(Object.values(usage)).toEqual(expect.arrayContaining([7, 9]))
})

const usageOf = (inputTokens: number): Usage => ({
  inputTokens,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
})

test.each(names)('%s: a usage that cannot be is kept as it was reported', (name) => {
  const { readPlain } = upstreamOf(name)
  const usage = { input_tokens: -5, output_tokens: 1e300, prompt_tokens: -5 }
  const { reportedUsage } = readPlain({ ...small[name], usage })
  expect(reportedUsage).toEqual(usage)
  expect(readPlain({ ...small[name], usage: undefined }).reportedUsage).toBeUndefined()
})
