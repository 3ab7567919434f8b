import { expect, test } from 'vitest'

import type { AnswerEvent, Json, SourceFrame } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { upstreamFormats } from '#formats/formats.ts'

import type { FrameTexts } from './frame-texts.ts'
import { isView } from './text-views.ts'

const readerOf = (format: CallerFormatName) => upstreamFormats.get(format)!.createTextReader()

const sourceOf = (json: Json, event = ''): SourceFrame => ({
  event,
  data: JSON.stringify(json),
  json,
  bytes: Buffer.alloc(0),
})

/** The texts of each frame as `channel kind text`, and what ends as `channel end`. */
function linesOf(format: CallerFormatName, ...frames: Json[]): string[][] {
  const reader = readerOf(format)
  return frames.map((json) => toLines(reader.read({ events: [], source: sourceOf(json) })))
}

const toLines = ({ texts, ended }: FrameTexts) => [
  ...texts.map(({ channel, kind, text }) => `${channel} ${kind} ${text}`),
  ...ended.filter((channel) => !isView(channel)).map((channel) => `${channel} end`),
]

const start = (index: number, content_block: Json) => ({
  type: 'content_block_start',
  index,
  content_block,
})
const delta = (index: number, type: string, members: Json) => ({
  type: 'content_block_delta',
  index,
  delta: { type, ...members },
})
const stop = (index: number) => ({ type: 'content_block_stop', index })

test('Messages: a block is a channel from its start to its stop', () => {
  expect(
    linesOf(
      'messages',
      start(0, { type: 'text', text: 'Given ' }),
      delta(0, 'text_delta', { text: 'at once.' }),
      stop(0),
      start(10, { type: 'thinking', thinking: '', signature: '' }),
      delta(10, 'thinking_delta', { thinking: 'Hm' }),
      start(1, { type: 'text', text: 'b' }),
      stop(1),
      stop(10),
    ),
  ).toEqual([
    ['0/text delta Given '],
    ['0/text delta at once.'],
    ['0/text end'],
    [],
    ['10/thinking delta Hm'],
    ['1/text delta b'],
    ['1/text end'],
    ['10/thinking end'],
  ])
})

test('Messages: the input of a tool is read as its strings, whole or in pieces', () => {
  const [whole] = linesOf('messages', start(0, { type: 'tool_use', name: 'f', input: { a: 'b' } }))
  expect(whole).toEqual([
    'other0 whole f',
    '0/input#0 delta a',
    '0/input#1 delta b',
    'other0 end',
    '0/input#0 end',
    '0/input#1 end',
  ])
  const pieces = ['', '{"a":"b\\u00', '6f', 'm"', '}'].map((partial_json) =>
    delta(0, 'input_json_delta', { partial_json }),
  )
  expect(linesOf('messages', start(0, { type: 'tool_use', input: {} }), ...pieces)).toEqual([
    [],
    [],
    ['0/input#0 delta a', '0/input#1 delta b', '0/input#0 end'],
    ['0/input#1 delta o'],
    ['0/input#1 delta m', '0/input#1 end'],
    [],
  ])
})

test('Messages: pieces of an input are not taken for more of an input that was given whole', () => {
  const [, more] = linesOf(
    'messages',
    start(0, { type: 'tool_use', input: { a: 'b' } }),
    delta(0, 'input_json_delta', { partial_json: '["c"]' }),
  )
  expect(more).toEqual(['0/input#2 delta c', '0/input#2 end'])
})

test('Messages: deltas of an unknown kind are joined, unknown frames stand for themselves', () => {
  expect(
    linesOf(
      'messages',
      start(0, { type: 'compaction', content: null }),
      delta(0, 'compaction_delta', { content: 'Shor' }),
      delta(0, 'compaction_delta', { content: 'ter.' }),
      { type: 'news', value: { a: ['b', 7] } },
    ),
  ).toEqual([
    [],
    ['0/compaction_delta.content delta Shor'],
    ['0/compaction_delta.content delta ter.'],
    ['other0 whole b', 'other0 end'],
  ])
})

test('a frame without a type has that of its event line', () => {
  const source = sourceOf({ index: 0, delta: { type: 'text_delta', text: 'a' } })
  const read = readerOf('messages').read({
    events: [],
    source: { ...source, event: 'content_block_delta' },
  })
  expect(toLines(read)).toEqual(['0/text delta a'])
})

test('Responses: a whole text names the channel of its deltas', () => {
  const text = (type: string, members: Json) => ({
    type: `response.${type}`,
    item_id: 'm',
    output_index: 2,
    content_index: 1,
    ...members,
  })
  const part = { type: 'output_text', text: 'Hi.', annotations: [] }
  const item = { id: 'm', type: 'message', role: 'assistant', content: [{ type: 'x' }, part] }
  expect(
    linesOf(
      'responses',
      { type: 'response.output_item.added', output_index: 2, item: { ...item, content: [] } },
      text('content_part.added', { part: { ...part, text: '' } }),
      text('output_text.delta', { delta: 'Hi' }),
      text('output_text.done', { text: 'Hi.' }),
      text('content_part.done', { part }),
      { type: 'response.output_item.done', output_index: 2, item },
      { type: 'response.completed', response: { id: 'r', output: [item] } },
    ),
  ).toEqual([
    [],
    [],
    ['item2/content1 delta Hi'],
    ['item2/content1 whole Hi.'],
    ['item2/content1 whole Hi.', 'item2/content1 end'],
    ['item2/content1 whole Hi.', 'item2/content1 end'],
    ['item2/content1 whole Hi.', 'item2/content1 end'],
  ])
})

test('Responses: what an item has at its start is judged apart from its deltas', () => {
  const item = { id: 'f', type: 'function_call', call_id: 'c', name: 'ring', arguments: '["a"]' }
  const [added, , done] = linesOf(
    'responses',
    { type: 'response.output_item.added', output_index: 0, item },
    { type: 'response.function_call_arguments.delta', item_id: 'f', delta: '["a"]' },
    { type: 'response.output_item.done', item },
  )
  expect(added).toContain('other1 whole ring')
  expect(added).toContain('other0/arguments#0 whole a')
  expect(done).toEqual(['item0/arguments#0 whole a', 'item0/arguments#0 end'])
})

test('a text that no delta brings counts once, however often frames repeat it', () => {
  const named = (name: string) => chunk({ delta: { content: 'a' }, provider: name })
  expect(linesOf('chat_completions', named('One'), named('One'), named('Two'))).toEqual([
    ['choice0/content delta a', 'other0 whole One', 'other0 end'],
    ['choice0/content delta a'],
    ['choice0/content delta a', 'other1 whole Two', 'other1 end'],
  ])
})

test('Responses: an item that only the whole response has gets a place of its own', () => {
  const [, completed] = linesOf(
    'responses',
    { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'a' },
    {
      type: 'response.completed',
      response: {
        output: [
          { id: 'r', type: 'reasoning', summary: [{ type: 'summary_text', text: 's' }] },
          { id: 'm', type: 'message', content: [{ type: 'refusal', refusal: 'no' }] },
        ],
      },
    },
  )
  expect(completed).toEqual(
    expect.arrayContaining(['item0/summary0 whole s', 'item1/content0 whole no']),
  )
})

const chunk = (choice: Json) => ({ id: 'c', choices: [{ index: 0, ...choice }] })

test('Chat: deltas are joined by member, a message beside them is a whole text', () => {
  const call = (members: Json) => chunk({ delta: { tool_calls: [members] } })
  expect(
    linesOf(
      'chat_completions',
      chunk({ delta: { role: 'assistant', content: '' } }),
      chunk({ delta: { reasoning_content: 'Hm' } }),
      chunk({ message: { content: 'Hi' }, delta: { content: 'Hi' } }),
      call({ index: 1, id: 'x', function: { name: 'f', arguments: '{"a' } }),
      call({ index: 1, function: { arguments: 'b":1' } }),
      chunk({ delta: {}, finish_reason: 'stop' }),
    ),
  ).toEqual([
    [],
    ['choice0/reasoning_content delta Hm'],
    ['choice0/content delta Hi', 'choice0/content whole Hi', 'choice0/reasoning_content end'],
    [
      'choice0/tool1/name delta f',
      'choice0/tool1/arguments#0 delta a',
      'choice0/content end',
      'choice0/tool1/name end',
    ],
    [
      'choice0/tool1/arguments#0 delta b',
      'choice0/tool1/arguments#1 delta 1',
      'choice0/tool1/arguments#0 end',
    ],
    ['choice0/tool1/arguments#1 end'],
  ])
})

test('Chat: a text that goes on after another has begun repeats its end in a channel of its own', () => {
  const say = (member: string, text: string) => chunk({ delta: { [member]: text } })
  const long = 'x'.repeat(2000)
  expect(
    linesOf(
      'chat_completions',
      say('content', `${long}sec`),
      say('reasoning_content', 'Hm'),
      say('content', 'ret'),
      say('content', ' plan'),
    ),
  ).toEqual([
    [`choice0/content delta ${long}sec`],
    ['choice0/reasoning_content delta Hm', 'choice0/content end'],
    [`choice0/content~ delta ${long.slice(-1021)}secret`, 'choice0/reasoning_content end'],
    ['choice0/content~ delta  plan'],
  ])
})

test('Chat: unknown members and items with an index are joined, other lists are not', () => {
  const details = (text: string) => [{ index: 0, type: 'reasoning.text', text }]
  expect(
    linesOf(
      'chat_completions',
      chunk({ delta: { mood: 'gl', reasoning_details: details('a') } }),
      chunk({ delta: { mood: 'ad', reasoning_details: details('b'), notes: ['x', 'y'] } }),
    ),
  ).toEqual([
    ['choice0/mood delta gl', 'choice0/reasoning_details.0.text delta a'],
    [
      'choice0/mood delta ad',
      'choice0/reasoning_details.0.text delta b',
      'other0 whole x',
      'other1 whole y',
      'other0 end',
      'other1 end',
    ],
  ])
})

test('Chat: details without an index are joined by their place', () => {
  const details = (...texts: string[]) =>
    chunk({ delta: { reasoning_details: texts.map((text) => ({ type: 'reasoning.text', text })) } })
  expect(linesOf('chat_completions', details('bo', 'x'), details('mb'))).toEqual([
    ['choice0/reasoning_details.0.text delta bo', 'choice0/reasoning_details.1.text delta x'],
    ['choice0/reasoning_details.0.text delta mb'],
  ])
})

const nameCall = (name: string, given?: string) =>
  chunk({ delta: { tool_calls: [{ index: 0, function: { name, arguments: given } }] } })

test('Chat: the pieces of a name are joined, up to the arguments', () => {
  const argued = { tool_calls: [{ index: 0, function: { arguments: '{' } }] }
  const frames = [nameCall('make_'), nameCall('bo'), nameCall('mb'), chunk({ delta: argued })]
  expect(linesOf('chat_completions', ...frames)).toEqual([
    ['choice0/tool0/name delta make_'],
    ['choice0/tool0/name delta bo'],
    ['choice0/tool0/name delta mb'],
    ['choice0/tool0/name end'],
  ])
})

test('Chat: a name that is repeated counts once, and the legacy call has one too', () => {
  expect(linesOf('chat_completions', nameCall('look', '{'), nameCall('look', '}'))).toEqual([
    ['choice0/tool0/name delta look', 'choice0/tool0/name end'],
    [],
  ])
  const legacy = (name: string) => chunk({ delta: { function_call: { name } } })
  expect(linesOf('chat_completions', legacy('lo'), legacy('ok'))).toEqual([
    ['choice0/function/name delta lo'],
    ['choice0/function/name delta ok'],
  ])
})

const tokenOf = (token: string, ...alternatives: string[]) => ({
  token,
  logprob: -1,
  top_logprobs: alternatives.map((other) => ({ token: other, logprob: -2 })),
})

test('tokens are the text once more, and each column of alternatives is a text', () => {
  const say = (content: string, ...tokens: Json[]) =>
    chunk({ delta: { content }, logprobs: { content: tokens } })
  expect(
    linesOf(
      'chat_completions',
      say('a b', tokenOf('a', 'x', 'bo'), tokenOf(' b', 'y', 'm')),
      say('c', tokenOf('c', 'z', 'b')),
    ),
  ).toEqual([
    [
      'choice0/content delta a b',
      'choice0/logprobs.content delta a b',
      'choice0/logprobs.content.alternatives0 delta xy',
      'choice0/logprobs.content.alternatives1 delta bom',
    ],
    [
      'choice0/content delta c',
      'choice0/logprobs.content delta c',
      'choice0/logprobs.content.alternatives0 delta z',
      'choice0/logprobs.content.alternatives1 delta b',
    ],
  ])
})

/** A frame that was not parsed, as the reader of pieces makes them. */
const repeated = (text: string) => {
  const event: AnswerEvent = { type: 'block_delta', index: 0, text }
  const source = sourceOf({ type: 'parsed', text: 'from the JSON' })
  return { events: [event], source, isRepeated: true }
}

test('a repeated frame is more of the delta before it, without its JSON', () => {
  const reader = readerOf('messages')
  reader.read({ events: [], source: sourceOf(delta(0, 'text_delta', { text: 'a' })) })
  expect(toLines(reader.read(repeated('b')))).toEqual(['0/text delta b'])
  expect(toLines(reader.read(repeated('c')))).toEqual(['0/text delta c'])
})

test('a repeated frame of arguments goes through the decoder', () => {
  const reader = readerOf('messages')
  const fragment = delta(0, 'input_json_delta', { partial_json: '["a' })
  reader.read({ events: [], source: sourceOf(fragment) })
  expect(toLines(reader.read(repeated('b')))).toEqual(['0/input#0 delta b'])
})

test('a repeated frame with two deltas is parsed', () => {
  const reader = readerOf('chat_completions')
  reader.read({ events: [], source: sourceOf(chunk({ delta: { content: 'a', mood: 'b' } })) })
  expect(toLines(reader.read(repeated('c')))).toEqual(['other0 whole from the JSON', 'other0 end'])
})

test('a value may be nested more deeply than the stack allows', () => {
  let deep: unknown = 'bottom'
  for (let level = 0; level < 200_000; level++) deep = [deep]
  const frames = [start(0, { type: 'tool_use', input: deep }), { type: 'news', deep }]
  for (const json of frames) {
    const { texts } = readerOf('messages').read({ events: [], source: { ...sourceOf({}), json } })
    expect(texts.map(({ text }) => text)).toEqual(['bottom'])
  }
  const { texts } = readerOf('chat_completions').read({
    events: [],
    source: { ...sourceOf({}), json: chunk({ delta: { deep } }) },
  })
  expect(texts.map(({ text }) => text)).toEqual(['bottom'])
})

test('data is noted, a signature is not, and words in their place are texts', () => {
  const blocks: [Json, boolean, number][] = [
    [{ type: 'redacted_thinking', data: 'AAAA' }, true, 0],
    [{ type: 'thinking', thinking: '', signature: 'AAAA' }, false, 0],
    [{ type: 'new', source: { data: 'AAAA' } }, true, 0],
    [{ type: 'new', source: { data: 'plain words' } }, false, 1],
    [{ type: 'new', url: 'data:image/png;base64,AAAA' }, true, 0],
    [{ type: 'new', url: 'data:,plain' }, false, 1],
  ]
  for (const [block, hasUnreadable, count] of blocks) {
    const found = readerOf('messages').readPlain({ content: [block] })
    expect(found.hasUnreadable).toBe(hasUnreadable)
    expect(found.texts.length).toBe(count)
  }
})
