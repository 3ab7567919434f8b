import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { AnswerEvent, Block, Json, OutFrame, StopReason } from '#formats/answer.ts'
import { noUsage } from '#formats/answer.ts'
import type { Answering } from '#formats/format.ts'
import { packOpaqueState } from '#formats/opaque-state.ts'
import { readComplaint, toProviderError } from '#formats/provider-failure.ts'
import type { OpaqueState } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { responseCallerFormat, responseUpstreamFormat } from './response-format.ts'
import {
  answering,
  credits,
  eventsOf,
  parseOutput,
  receipt,
  sumUp,
  toSource,
} from './testing/golden-streams.ts'

const source = toSource({ type: 'any' })[0]!
const started: AnswerEvent = { type: 'started', id: 'x', model: 'y', usage: noUsage }
const finishedBy = (reason: StopReason): AnswerEvent => ({
  type: 'finished',
  reason,
  stopSequence: null,
  usage: noUsage,
})

function write(events: readonly AnswerEvent[], to: Answering = answering): OutFrame[] {
  const writer = responseCallerFormat.createWriter(to)
  const written = events.flatMap((event) => writer.write({ events: [event], source }))
  return [...written, ...writer.close(receipt)]
}

const block = (index: number, kind: Block, ...texts: string[]): AnswerEvent[] => [
  { type: 'block_started', index, block: kind },
  ...texts.map((text) => ({ type: 'block_delta' as const, index, text })),
  { type: 'block_ended', index },
]

const typesOf = (frames: readonly OutFrame[]) => frames.map(({ event }) => event)
const dataOf = (frame: OutFrame | undefined) => frame!.data as Json
const responseOf = (frame: OutFrame | undefined) => dataOf(frame)['response'] as Json

test('text comes in the order of the format, numbered from 0, under the name of its type', () => {
  const frames = write([started, ...block(0, { type: 'text' }, 'Hel', 'lo'), finishedBy('end')])
  expect(typesOf(frames)).toEqual([
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
  for (const [index, frame] of frames.entries()) {
    expect(frame.data).toMatchObject({ type: frame.event, sequence_number: index })
  }
})

test('a call comes in the order of the format, with the id it was made with', () => {
  const call: Block = { type: 'tool_call', id: 'call_1', name: 'now' }
  const frames = write([started, ...block(0, call, '{}'), finishedBy('tool_call')])
  expect(typesOf(frames).slice(2)).toEqual([
    'response.output_item.added',
    'response.function_call_arguments.delta',
    'response.function_call_arguments.done',
    'response.output_item.done',
    'response.completed',
  ])
  expect(dataOf(frames[2])['item']).toEqual({
    id: 'fc_0123456789abcdefghjkmnpq0',
    type: 'function_call',
    status: 'in_progress',
    arguments: '',
    call_id: 'call_1',
    name: 'now',
  })
})

test('nothing of the end is written before the bill is settled', () => {
  const writer = responseCallerFormat.createWriter(answering)
  writer.write({ events: [started], source })
  expect(writer.write({ events: [finishedBy('end')], source })).toEqual([])
  expect(typesOf(writer.close(receipt))).toEqual(['response.completed'])
})

test('what the caller asked for is repeated, and nothing is stored', () => {
  const tools = [{ type: 'function', name: 'now', parameters: null, strict: true }]
  const request = {
    model: 'house-model',
    instructions: 'Be brief.',
    max_output_tokens: 64,
    temperature: 0.2,
    tools,
    tool_choice: 'required',
    parallel_tool_calls: false,
    metadata: { ticket: '7' },
    reasoning: { effort: 'low' },
    text: { verbosity: 'low' },
    store: true,
    truncation: 'auto',
  }
  const frames = write([started, finishedBy('end')], { ...answering, request })
  for (const frame of frames) {
    expect(responseOf(frame)).toMatchObject({
      ...request,
      id: 'resp_0123456789abcdefghjkmnpq',
      object: 'response',
      created_at: 1790071200,
      top_p: 1,
      reasoning: { effort: 'low', summary: null },
      text: { format: { type: 'text' }, verbosity: 'low' },
      store: false,
      truncation: 'disabled',
      previous_response_id: null,
      error: null,
    })
  }
})

test('usage has its details and stands beside the credits', () => {
  const usage = {
    inputTokens: 10,
    outputTokens: 5,
    cachedInputTokens: 4,
    cacheWriteTokens: 2,
    reasoningTokens: 3,
  }
  const finished: AnswerEvent = { type: 'finished', reason: 'end', stopSequence: null, usage }
  expect(responseCallerFormat.fold(write([started, finished]))).toMatchObject({
    usage: {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 15,
    },
    ...credits,
  })
})

test.each([
  ['max_tokens', 'incomplete', { reason: 'max_output_tokens' }],
  ['content_filter', 'incomplete', { reason: 'content_filter' }],
  ['end', 'completed', null],
  ['stop_sequence', 'completed', null],
  ['pause', 'completed', null],
] as const)('an answer that ends by %s is %s', (reason, status, details) => {
  const last = write([started, finishedBy(reason)]).at(-1)
  expect(last?.event).toBe(`response.${status}`)
  expect(responseOf(last)).toMatchObject({ status, incomplete_details: details })
})

test('a refusal is told: by its words, and without words as a content filter’s end', () => {
  const silent = write([started, finishedBy('refusal')]).at(-1)
  expect(silent?.event).toBe('response.incomplete')
  expect(responseOf(silent)['incomplete_details']).toEqual({ reason: 'content_filter' })
  const spoken = write([started, ...block(0, { type: 'refusal' }, 'No.'), finishedBy('refusal')])
  expect(spoken.at(-1)?.event).toBe('response.completed')
})

test('reasoning sealed by another format comes back as it was', () => {
  const opaque: OpaqueState = { origin: 'messages', kind: 'signature', data: 'sig==', id: null }
  const frames = write([
    started,
    { type: 'block_started', index: 0, block: { type: 'reasoning' } },
    { type: 'block_delta', index: 0, text: 'Hm.' },
    { type: 'block_sealed', index: 0, opaque },
    { type: 'block_ended', index: 0 },
    finishedBy('end'),
  ])
  const { output } = responseCallerFormat.fold(frames)
  expect(output).toMatchObject([{ type: 'reasoning', encrypted_content: packOpaqueState(opaque) }])
  const turn = responseCallerFormat.readTurn({ input: output })
  expect(turn.messages).toEqual([
    { role: 'assistant', parts: [{ type: 'reasoning', text: 'Hm.', opaque }] },
  ])
  // Neither way may it reach an upstream of this format.
  const upstream = {
    model: 'm',
    maxOutputTokens: 9,
    outputLimitMember: 'max_completion_tokens',
  } as const
  expect(responseUpstreamFormat.writeRequest(turn, upstream)['input']).toEqual([])
  expect(responseUpstreamFormat.forwardRequest({ input: output }, upstream)['input']).toEqual([])
})

const failures = [
  [
    new ApiError('policy_blocked', 'No.'),
    { code: 'invalid_prompt', message: 'policy_blocked: No.' },
  ],
  [
    new ApiError('moderation_blocked', 'No.'),
    { code: 'invalid_prompt', message: 'moderation_blocked: No.' },
  ],
  [
    new ApiError('policy_evaluation_unavailable', 'Later.'),
    { code: 'server_is_overloaded', message: 'Later.' },
  ],
  [new ApiError('overloaded', 'Later.'), { code: 'server_is_overloaded', message: 'Later.' }],
  [new ApiError('upstream_timeout', 'Late.'), { code: 'server_is_overloaded', message: 'Late.' }],
  [new ApiError('upstream_rejected', 'Bad.'), { code: 'invalid_prompt', message: 'Bad.' }],
  [new ApiError('upstream_error', 'Broken.'), { code: 'server_error', message: 'Broken.' }],
  [
    toProviderError(readComplaint({ code: 'context_length_exceeded', message: 'Too long.' })),
    { code: 'context_length_exceeded', message: 'The model provider failed: Too long.' },
  ],
] as const

test.each(failures)('%s in the middle becomes response.failed', (error, expected) => {
  for (const create of [
    responseCallerFormat.createWriter,
    responseCallerFormat.createPassThrough,
  ]) {
    const fresh = create(answering).fail(error)
    expect(typesOf(fresh)).toEqual(['response.created', 'response.failed'])
    expect(fresh.map((frame) => dataOf(frame)['sequence_number'])).toEqual([0, 1])
    expect(responseOf(fresh[1])).toMatchObject({ status: 'failed', error: expected })

    const writer = create(answering)
    const begun = toSource(
      { type: 'response.created', sequence_number: 0, response: { id: 'resp_begun' } },
      { type: 'response.in_progress', sequence_number: 1, response: { id: 'resp_begun' } },
    )
    for (const [index, frame] of begun.entries()) {
      writer.write({ events: index === 0 ? [started] : [], source: frame })
    }
    const late = writer.fail(error)
    expect(typesOf(late)).toEqual(['response.failed'])
    expect(dataOf(late[0])).toMatchObject({ sequence_number: 2, response: { error: expected } })
  }
})

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom(' ', '\n\n', ' a '),
)
const texts = fc.array(
  text.filter((value) => value !== ''),
  { maxLength: 4 },
)
const kinds = fc.oneof(
  fc.record({ kind: fc.constant({ type: 'text' } as Block), texts }),
  fc.record({ kind: fc.constant({ type: 'refusal' } as Block), texts }),
  fc.record({
    kind: fc.uuid().map((id): Block => ({ type: 'tool_call', id, name: `tool_${id.slice(0, 4)}` })),
    texts,
  }),
  fc.record({
    kind: fc.constant({ type: 'reasoning' } as Block),
    texts,
    seal: fc.string({ minLength: 1 }).map((data) => `gAAAA${data}`),
  }),
)

/** Blocks that start in order and then take turns as the given numbers say. */
function interleave(
  blocks: readonly (typeof kinds extends fc.Arbitrary<infer B> ? B : never)[],
  turns: number[],
) {
  const queues = blocks.map(({ kind, texts: pieces, ...more }, index): AnswerEvent[] => {
    const events = block(index, kind, ...pieces)
    if (!('seal' in more)) return events
    const opaque: OpaqueState = {
      origin: 'responses',
      kind: 'encrypted',
      data: more.seal,
      id: null,
    }
    return [...events.slice(0, -1), { type: 'block_sealed', index, opaque }, ...events.slice(-1)]
  })
  const events: AnswerEvent[] = []
  let begun = 0
  for (let step = 0; queues.some((queue) => queue.length > 0); step++) {
    const open = queues.slice(0, begun).filter((queue) => queue.length > 0)
    const turn = (turns[step % turns.length] ?? 0) % (open.length + 1)
    const queue = open[turn] ?? queues[begun++] ?? open[0]
    // Reasoning shows itself with its first text only, so nothing else may start before that.
    const isReasoning = queue?.[0]?.type === 'block_started' && queue[0].block.type === 'reasoning'
    events.push(...(queue?.splice(0, isReasoning ? queue.length : 1) ?? []))
  }
  return events
}

test('whatever is written reads back as it was, also when blocks overlap', () => {
  fc.assert(
    fc.property(
      fc.array(kinds, { maxLength: 5 }),
      fc.array(fc.nat(7), { minLength: 1, maxLength: 9 }),
      fc.constantFrom<StopReason>('end', 'max_tokens', 'content_filter'),
      (blocks, turns, wish) => {
        const has = (type: string) => blocks.some(({ kind }) => kind.type === type)
        const whole = has('tool_call') ? 'tool_call' : has('refusal') ? 'refusal' : 'end'
        const events = [
          started,
          ...interleave(blocks, turns),
          finishedBy(wish === 'end' ? whole : wish),
        ]
        const frames = write(events)
        const [before, after] = [sumUp(events), sumUp(eventsOf(parseOutput(frames)))]
        expect(after.reason).toBe(before.reason)
        expect(after.blocks.map((item) => ({ ...item, opaque: item.opaque?.data }))).toEqual(
          before.blocks.map((item) => ({ ...item, opaque: item.opaque?.data })),
        )
        const output = responseOf(frames.at(-1))['output'] as Json[]
        expect(output.map(textOf)).toEqual(before.blocks.map((item) => item.text))
        expect(output).toEqual(doneItems(frames))
        expect(responseCallerFormat.fold(frames)['output']).toEqual(output)
      },
    ),
  )
})

/** The one text that an item has. */
function textOf(item: Json): unknown {
  if (item['type'] === 'function_call') return item['arguments']
  const [part] = (item['type'] === 'reasoning' ? item['summary'] : item['content']) as Json[]
  return part ? (part['text'] ?? part['refusal']) : ''
}

/** The items as a client keeps them that listens to output_item.done only. */
function doneItems(frames: readonly OutFrame[]) {
  const done = frames.filter(({ event }) => event === 'response.output_item.done').map(dataOf)
  return done
    .toSorted((one, other) => Number(one['output_index']) - Number(other['output_index']))
    .map(({ item }) => item)
}
