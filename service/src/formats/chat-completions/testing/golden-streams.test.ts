import { ChatCompletion } from '@gatehouse/contract/chat-completion'
import { expect, test } from 'vitest'

import type { Json, OutFrame, Writer } from '#formats/answer.ts'
import { chatCallerFormat } from '#formats/chat-completions/chat-completion-format.ts'
import { readChatUsage } from '#formats/chat-completions/chat-usage.ts'
import { toSse } from '#formats/sse.ts'
import { parseStream } from '#formats/testing/parse-stream.ts'

import {
  answering,
  credits,
  eventsOf,
  goldens,
  outlineOf,
  readAll,
  receipt,
  wholeGoldens,
} from './golden-streams.ts'

const { createPassThrough, createWriter, fold } = chatCallerFormat

function writeAll(bytes: Buffer, writer: Writer): OutFrame[] {
  const { frames } = readAll(parseStream([bytes]))
  return [...frames.flatMap((frame) => writer.write(frame)), ...writer.close(receipt)]
}

test.each(goldens)('$name: it is read as what it says', ({ bytes, outline, fails }) => {
  const { frames, failure } = readAll(parseStream([bytes]))
  expect(outlineOf(eventsOf(frames))).toEqual(outline)
  expect((failure as Error | undefined)?.message).toBe(fails)
})

test.each(wholeGoldens)('$name: folded as it came, it is the plain answer', ({ bytes, body }) => {
  const folded = fold(writeAll(bytes, createPassThrough(answering())))
  expect(folded).toEqual({ ...body, ...credits })
  expect(ChatCompletion.parse(folded)).toEqual(folded)
})

test.each(wholeGoldens)(
  '$name: rebuilt and folded, it says the same',
  ({ bytes, body, rewritten }) => {
    const folded = fold(writeAll(bytes, createWriter(answering())))
    const [choice] = body.choices
    const { mood: _, annotations: _a, function_call: _f, ...message } = choice.message
    expect(folded).toEqual({
      id: 'chatcmpl-0123456789abcdefghjkmnpq',
      object: 'chat.completion',
      created: 1_800_000_000,
      model: 'their-name',
      choices: [
        {
          index: 0,
          message: { ...message, ...rewritten?.message },
          logprobs: null,
          finish_reason: rewritten?.finish_reason ?? choice.finish_reason,
        },
      ],
      usage: folded['usage'],
      ...credits,
    })
    expect(readChatUsage(folded['usage'] as Json)).toEqual(readChatUsage(body.usage))
    expect(ChatCompletion.parse(folded)).toEqual(folded)
  },
)

const withUsage = { stream: true, stream_options: { include_usage: true } }

test.each(wholeGoldens)('$name: all but the closing frames keep their bytes', ({ bytes, name }) => {
  const sources = parseStream([bytes])
  const finish = sources.findIndex(({ data }) => /"finish_reason":"/.test(data))
  // Usage that came with the finish reason is told once, in a chunk of its own.
  const isMoved = name === 'usage-in-finish-chunk'
  for (const [request, untouched] of [
    [withUsage, isMoved ? finish : finish + 1],
    [{ stream: true }, finish],
  ] as const) {
    const out = writeAll(bytes, createPassThrough(answering(request))).map(toSse)
    expect(out.slice(0, untouched)).toEqual(sources.slice(0, untouched).map((one) => one.bytes))
    expect(out.slice(untouched).every((one) => typeof one === 'string')).toBe(true)
    expect(out.length).toBe(finish + (request === withUsage ? 3 : 2))
  }
})

test.each(wholeGoldens)('$name: usage is told to those who asked, and once', ({ bytes }) => {
  const usageIn = (frames: OutFrame[]) =>
    frames.filter(
      ({ data }) =>
        data !== '[DONE]' && typeof data['usage'] === 'object' && data['usage'] !== null,
    )
  for (const create of [createPassThrough, createWriter]) {
    expect(usageIn(writeAll(bytes, create(answering(withUsage))))).toHaveLength(1)
    expect(usageIn(writeAll(bytes, create(answering({ stream: true }))))).toEqual([])
  }
})
