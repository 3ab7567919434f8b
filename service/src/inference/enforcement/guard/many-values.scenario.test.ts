import { expect, test } from 'vitest'

import { type AnswerEvent, noUsage, type OutFrame, type SourceFrame } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { callerFormats } from '#formats/formats.ts'
import { toSse } from '#formats/sse.ts'
import { guardPlain, guardStreamed } from '#inference/enforcement/testing/guard-written.ts'
import type { WrittenAnswer } from '#inference/enforcement/testing/written-frame.ts'
import { createChoices } from '#policies/guard/testing/random-case.ts'
import { answerFacts, ruleSetOf } from '#policies/guard/testing/rule-set-of.ts'

// A tool call may have more values than there are channels for them, in every format, streamed and plain.

const set = ruleSetOf(['text.contains("secret")'])
const judges = { set, rules: set.openAnswer(answerFacts) }
const source: SourceFrame = { event: '', data: '', json: {}, bytes: Buffer.alloc(0) }
const answering = {
  requestId: 'req_0123456789abcdefghjkmnpq',
  model: 'their-name',
  createdAt: new Date(0),
  inputTokens: 42,
  request: {},
}
const receipt = { remainingCredits: 900, creditsUsed: 7, costUsd: 0.0007, usage: null }

/** An answer that calls a tool with this input, whose JSON comes in many deltas. */
function writeCall(format: CallerFormatName, input: unknown): WrittenAnswer {
  const deltas = JSON.stringify(input).match(/.{1,97}/gs) ?? []
  const events: AnswerEvent[] = [
    { type: 'started', id: 'upstream', model: 'theirs', usage: noUsage },
    { type: 'block_started', index: 0, block: { type: 'tool_call', id: 'call_1', name: 'look' } },
    ...deltas.map((text): AnswerEvent => ({ type: 'block_delta', index: 0, text })),
    { type: 'block_ended', index: 0 },
    { type: 'finished', reason: 'end', stopSequence: null, usage: noUsage },
  ]
  const writer = callerFormats[format].createWriter(answering)
  const out: OutFrame[] = events.flatMap((event) => writer.write({ events: [event], source }))
  out.push(...writer.close(receipt))
  const written = out.map((frame) => Buffer.from(toSse(frame)).toString())
  // What closes a stream of Chat Completions is not a frame of the answer.
  const isRest = (bytes: string) => bytes.includes('[DONE]')
  const frames = written.filter((bytes) => !isRest(bytes)).map((bytes) => ({ bytes, says: [] }))
  const rest = written.filter(isRest).join('')
  return { frames, rest, body: callerFormats[format].fold(out), bodySays: [] }
}

const formats = ['messages', 'responses', 'chat_completions'] as const
const values = Array.from({ length: 1100 }, (_, index) => index)

test.each(formats)('%s: a tool call with more than 1,000 values leaves', async (format) => {
  const written = writeCall(format, { a: values })
  const streamed = await guardStreamed(format, written, judges, createChoices(1))
  expect(streamed).toMatchObject({ end: null, frames: written.frames.length })
  expect(await guardPlain(format, written, judges)).toMatchObject({ end: null, frames: 1 })
})

test.each(formats)('%s: the last of many values is judged like the first', async (format) => {
  const written = writeCall(format, { a: [...values, 'a secret'] })
  const streamed = await guardStreamed(format, written, judges, createChoices(1))
  expect(streamed.end).toBe('p REFUSE')
  expect(await guardPlain(format, written, judges)).toMatchObject({ end: 'p REFUSE', frames: 0 })
})
