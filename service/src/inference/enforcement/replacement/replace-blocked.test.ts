import { expect, test } from 'vitest'

import type { AnswerEvent, Json, Piece, Receipt } from '#formats/answer.ts'
import {
  chatCallerFormat,
  chatUpstreamFormat,
} from '#formats/chat-completions/chat-completion-format.ts'
import { messageCallerFormat, messageUpstreamFormat } from '#formats/messages/message-format.ts'
import { responseCallerFormat, responseUpstreamFormat } from '#formats/responses/response-format.ts'
import { meaningOf } from '#formats/testing/meaning-of.ts'
import { parseStream } from '#formats/testing/parse-stream.ts'
import { toEvents } from '#formats/testing/said-events.ts'
import type { AnswerPart } from '#inference/run-inference.ts'
import { foldAnswer, streamAnswer } from '#inference/write-answer.ts'
import { ApiError } from '#platform/api-error.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'

import { replaceInStream, replaceWhole } from './replace-blocked.ts'
import { answerWith } from './sent-blocks.ts'

const formats = [
  { caller: messageCallerFormat, upstream: messageUpstreamFormat },
  { caller: responseCallerFormat, upstream: responseUpstreamFormat },
  { caller: chatCallerFormat, upstream: chatUpstreamFormat },
] as const
type Format = (typeof formats)[number]

const answering = {
  requestId: 'req_0123456789abcdef01234567',
  model: 'ours',
  createdAt: new Date(0),
  inputTokens: 40,
  request: { stream_options: { include_usage: true } },
}
const counted = {
  inputTokens: 40,
  outputTokens: 7,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
}
const receipt: Receipt = { remainingCredits: 5, creditsUsed: 3, costUsd: 0.1, usage: counted }
const blocked = new ApiError('policy_blocked', 'A policy blocks this.')
const replacement = { text: 'Other words.', model: 'small', tokens: 9 }

const said = toEvents([
  { type: 'reasoning', pieces: ['Hm', 'm.'] },
  { type: 'text', pieces: ['Good ', 'day. '] },
  { type: 'tool_call', pieces: ['{"at":', '1}'] },
  { type: 'text', pieces: ['Well, ', 'that is'] },
])

/** What the upstream sent is not what the events say, so that the test sees if it is passed on. */
const source = {
  event: 'wrong',
  data: '{"wrong":1}',
  bytes: Buffer.from('wrong'),
  json: { wrong: 1 },
}

/** The first events of an answer in the caller's own format, of which the guard then ends the rest. */
async function* cutAfter(count: number, { upstream }: Format): AsyncGenerator<Piece> {
  for (const event of said.slice(0, count)) {
    yield { format: upstream.name, frames: [{ events: [event], source }] }
  }
  throw blocked
}

async function* withReceipt(
  pieces: AsyncIterable<Piece> | Iterable<Piece>,
): AsyncGenerator<AnswerPart> {
  for await (const piece of pieces) yield { piece }
  yield { receipt }
}

/** What a caller reads, by the reader of its own format. */
async function readStream(
  pieces: AsyncIterable<Piece> | Iterable<Piece>,
  { caller, upstream }: Format,
) {
  const written: Buffer[] = []
  const stream = {
    write: (bytes: Buffer | string) => void written.push(Buffer.from(bytes)),
    end: () => undefined,
  }
  const options = { format: caller, answering, cancellation: new Cancellation() }
  const error = await streamAnswer(withReceipt(pieces), stream as never, options)
  const frames = parseStream(written)
  const reader = upstream.createReader()
  const events: AnswerEvent[] = error ? [] : frames.flatMap((frame) => reader.read(frame))
  return { error, frames, events }
}

const textOf = (events: readonly AnswerEvent[], type: string) => {
  const blocks = new Set(
    events.flatMap((each) =>
      each.type === 'block_started' && each.block.type === type ? each.index : [],
    ),
  )
  return events
    .flatMap((each) => (each.type === 'block_delta' && blocks.has(each.index) ? each.text : []))
    .join('')
}

const name = ({ caller }: Format) => caller.name
const cases = formats.flatMap((format) =>
  said.slice(0, -1).map((_, count) => ({ name: name(format), format, count })),
)

test.each(cases)(
  '$name, cut after $count events: what has left stays, and the replacement follows',
  async ({ format, count }) => {
    const pieces = replaceInStream(cutAfter(count, format), async () => replacement)
    const { error, events } = await readStream(pieces, format)
    expect(error).toBeUndefined()
    const left = said.slice(0, count)
    const { text, reasoning, usage } = meaningOf(events)
    expect(text.replace('\n\n', '')).toBe(`${textOf(left, 'text')}Other words.`)
    expect(reasoning).toBe(textOf(left, 'reasoning'))
    expect(usage).toMatchObject({ inputTokens: 40, outputTokens: 7 })
    expect(textOf(events, 'tool_call')).toBe(textOf(left, 'tool_call'))
  },
)

const endings = {
  messages: (frames: Json[]) => frames.at(-2)?.['delta'],
  responses: (frames: Json[]) => {
    const { status, incomplete_details: details } = frames.at(-1)!['response'] as Json
    return { status, details }
  },
  chat_completions: (frames: Json[]) =>
    frames.flatMap(({ choices }) => choices as Json[]).at(-1)?.['finish_reason'],
}
const expectedEndings = {
  messages: { stop_reason: 'refusal', stop_sequence: null },
  responses: { status: 'incomplete', details: { reason: 'content_filter' } },
  chat_completions: 'content_filter',
}

test.each(formats)('$caller.name: a stream tells that content was filtered', async (format) => {
  const pieces = replaceInStream(cutAfter(6, format), async () => replacement)
  const { frames } = await readStream(pieces, format)
  const jsons = frames.map(({ json }) => json).filter((json) => Object.keys(json).length > 0)
  const last = format.caller.name
  expect(endings[last](jsons)).toEqual(expectedEndings[last])
})

test.each(formats)(
  '$caller.name: without a replacement the stream ends as ever',
  async (format) => {
    const pieces = replaceInStream(cutAfter(6, format), async () => null)
    const { error, frames } = await readStream(pieces, format)
    expect(error).toBe(blocked)
    expect(JSON.stringify(frames.at(-1)?.json)).toContain('policy_blocked')
  },
)

test.each(formats)(
  '$caller.name: an answer that is not blocked is only rebuilt',
  async (format) => {
    const whole = (async function* () {
      for (const event of said)
        yield { format: format.upstream.name, frames: [{ events: [event], source }] }
    })()
    const { events } = await readStream(
      replaceInStream(whole, () => expect.unreachable()),
      format,
    )
    const { text, reasoning, calls } = meaningOf(events)
    expect([text, reasoning]).toEqual(['Good day. Well, that is', 'Hmm.'])
    expect(calls).toMatchObject([{ arguments: { at: 1 } }])
  },
)

const foldedEndings = {
  messages: {
    content: [{ type: 'text', text: 'Other words.' }],
    stop_reason: 'refusal',
    usage: { input_tokens: 40, output_tokens: 7 },
  },
  responses: {
    status: 'incomplete',
    incomplete_details: { reason: 'content_filter' },
    output: [{ type: 'message', content: [{ text: 'Other words.' }] }],
  },
  chat_completions: {
    choices: [{ message: { content: 'Other words.' }, finish_reason: 'content_filter' }],
  },
}

test.each(formats)('$caller.name, plain: the replacement is the whole content', async (format) => {
  const { caller } = format
  const pieces = replaceWhole(cutAfter(9, format), async () => replacement)
  const body = JSON.parse(await foldAnswer(withReceipt(pieces), caller, answering)) as Json
  expect(body).toMatchObject({ model: 'ours', ...foldedEndings[caller.name] })
  expect(body).toMatchObject({ remaining_credits: 5, estimated_credits_used: 3 })
  expect(JSON.stringify(body)).not.toMatch(/Good|Hm|wrong/)
})

test.each(formats)('$caller.name, plain: without a replacement the error stays', async (format) => {
  const pieces = replaceWhole(cutAfter(9, format), async () => null)
  await expect(foldAnswer(withReceipt(pieces), format.caller, answering)).rejects.toBe(blocked)
})

test('a plain answer that is not blocked passes as it came', async () => {
  const body = { choices: [{ message: { content: 'Hello', unknown: 1 } }], usage: {} }
  const data = JSON.stringify(body)
  const plain = { event: '', data, bytes: Buffer.from(data), json: body }
  const whole = (async function* () {
    yield { format: 'chat_completions', isPlain: true, frames: [{ events: [], source: plain }] }
  })()
  const pieces = replaceWhole(whole, () => expect.unreachable())
  const answer = JSON.parse(
    await foldAnswer(withReceipt(pieces), chatCallerFormat, answering),
  ) as Json
  expect(answer).toMatchObject({ choices: body.choices })
})

test.each(formats)(
  '$caller.name: a request that no model read has used nothing',
  async (format) => {
    const { events, frames } = await readStream([answerWith('Other words.')], format)
    expect(meaningOf(events)).toMatchObject({ text: 'Other words.', calls: [], reasoning: '' })
    const start = frames[0]?.json['message'] as Json | undefined
    if (start) expect(start['usage']).toMatchObject({ input_tokens: 0, output_tokens: 0 })
  },
)

test('a call of a tool that was cut does not look complete', async () => {
  const [message, response, chat] = await Promise.all(
    formats.map(async (format) => {
      // The call has started, and none of its arguments have left.
      const pieces = replaceInStream(cutAfter(10, format), async () => replacement)
      return (await readStream(pieces, format)).frames.map(({ json }) => json)
    }),
  )
  expect(JSON.stringify(chat)).not.toContain('{}"')
  const done = response!.filter(({ type }) => type === 'response.output_item.done')
  expect(done.map(({ item }) => (item as Json)['status'])).toEqual([
    'completed',
    'completed',
    'incomplete',
    'completed',
  ])
  expect(message!.at(-2)).toMatchObject({ delta: { stop_reason: 'refusal' } })
})
