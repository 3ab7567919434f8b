import fc from 'fast-check'
import { expect, test } from 'vitest'

import {
  chatCallerFormat,
  chatUpstreamFormat,
} from '#formats/chat-completions/chat-completion-format.ts'
import type { CallerFormat, UpstreamFormat } from '#formats/format.ts'
import { joinSse } from '#formats/join-sse.ts'
import { messageCallerFormat, messageUpstreamFormat } from '#formats/messages/message-format.ts'
import { parseStream } from '#formats/testing/parse-stream.ts'
import { StreamedAnswer } from '#platform/calls/streamed-answer.ts'

import type { Upstream } from './catalogue.ts'
import { PieceReader } from './read-pieces.ts'

// A frame that repeats the one before with another text is not parsed. Nothing may depend on that.

const say = (data: object) => `data: ${JSON.stringify(data)}\n\n`
const event = (data: { type: string }) => `event: ${data.type}\n${say(data)}`

const chat = (delta: object, finish_reason: string | null = null) =>
  say({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason }] })
const chatStreams = (deltas: readonly { kind: number; text: string }[]) =>
  deltas
    .map(({ kind, text }) => {
      if (kind < 4) return chat({ content: text })
      if (kind === 4) return chat({ reasoning_content: text })
      // Never complete: a call that goes on after its end would be refused.
      const unfinished = `[${text.length}`
      const call = { index: 0, id: 'call', function: { name: 'f', arguments: unfinished } }
      return kind === 5 ? chat({ tool_calls: [call] }) : ': ping\n\n'
    })
    .join('') + `${chat({}, 'stop')}data: [DONE]\n\n`

const block = (type: 'text_delta' | 'thinking_delta', index: number, text: string) =>
  event({
    type: 'content_block_delta',
    index,
    delta: { type, [type === 'text_delta' ? 'text' : 'thinking']: text },
  } as { type: string })
const messageStreams = (deltas: readonly { kind: number; text: string }[]) =>
  [
    event({ type: 'message_start', message: { id: 'm', usage: { input_tokens: 3 } } } as never),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'thinking' } } as never),
    event({ type: 'content_block_start', index: 1, content_block: { type: 'text' } } as never),
    ...deltas.map(({ kind, text }) => {
      if (kind < 4) return block('text_delta', 1, text)
      return kind < 6 ? block('thinking_delta', 0, text) : event({ type: 'ping' })
    }),
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn' } } as never),
    event({ type: 'message_stop' }),
  ].join('')

type Formats = { upstream: UpstreamFormat; caller: CallerFormat; write: typeof chatStreams }
const formats: readonly [string, Formats][] = [
  ['chat', { upstream: chatUpstreamFormat, caller: chatCallerFormat, write: chatStreams }],
  [
    'messages',
    { upstream: messageUpstreamFormat, caller: messageCallerFormat, write: messageStreams },
  ],
]

async function readFrames(format: UpstreamFormat, stream: string) {
  const answer = new StreamedAnswer()
  answer.onHead(200, {})
  answer.onBytes(Buffer.from(stream))
  answer.onEnd()
  const reader = new PieceReader(answer, { format, upstream: { secret: null } as Upstream })
  const frames = []
  for (let piece = await reader.read(); piece; piece = await reader.read()) {
    frames.push(...piece.frames)
  }
  return frames
}

const answering = (request: object) => ({
  requestId: 'req_1',
  model: 'm',
  createdAt: new Date(0),
  inputTokens: 1,
  request: { ...request },
})
const receipt = { remainingCredits: 5, creditsUsed: 1, costUsd: 0.1, usage: null }

/** What a caller gets, streamed and folded. */
function answer({ caller }: Formats, frames: Awaited<ReturnType<typeof readFrames>>) {
  const stream = caller.createPassThrough(answering({ stream: true }))
  const sent = frames.flatMap((frame) => stream.write(frame))
  const plain = caller.createPassThrough(answering({}))
  const folded = frames.flatMap((frame) => plain.write(frame))
  return {
    stream: joinSse([...sent, ...stream.close(receipt)]).toString(),
    body: caller.fold([...folded, ...plain.close(receipt)]),
  }
}

const texts = fc.oneof(fc.string(), fc.constantFrom('c', 'm', ',', '","', 'a "b"', 'ü', '\n', ' x'))
const kinds = fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 4, 4, 5, 6)
const deltas = fc.array(fc.record({ kind: kinds, text: texts }), { minLength: 5, maxLength: 40 })

test.each(formats)('frames of %s mean the same whether they repeat or not', async (_, format) => {
  let repeated = 0
  const property = fc.asyncProperty(deltas, async (all) => {
    const stream = format.write(all)
    const frames = await readFrames(format.upstream, stream)
    const reader = format.upstream.createReader()
    const parsed = parseStream([Buffer.from(stream)]).slice(0, frames.length)
    repeated += frames.filter(({ isRepeated }) => isRepeated).length
    const expected = parsed.map((source) => ({ events: reader.read(source), source }))
    expect(frames.map(({ events }) => events)).toEqual(expected.map(({ events }) => events))
    expect(frames.map(({ source }) => source.json)).toEqual(parsed.map(({ json }) => json))
    expect(answer(format, frames)).toEqual(answer(format, expected))
  })
  await fc.assert(property)
  expect(repeated).toBeGreaterThan(50)
})

test('a frame with a text and a part of a tool call is never taken for a repetition', async () => {
  const part = { index: 0, function: { arguments: '{' } }
  const mixed = chat({ content: 'a', tool_calls: [part] })
  const named = chat({ tool_calls: [{ index: 0, id: 'call', function: { name: 'f' } }] })
  const stream = chat({ content: 'x' }) + mixed + mixed.replace('"a"', '"b"') + named
  const frames = await readFrames(
    chatUpstreamFormat,
    `${stream}${chat({}, 'stop')}data: [DONE]\n\n`,
  )
  expect(frames.map(({ isRepeated }) => isRepeated ?? false)).not.toContain(true)
})
