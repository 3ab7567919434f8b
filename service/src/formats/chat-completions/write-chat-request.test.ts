import { CreateChatCompletion } from '@gatehouse/contract/chat-completion'
import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import type { Part, Turn, TurnMessage } from '#formats/turn.ts'

import { chatCallerFormat, chatUpstreamFormat } from './chat-completion-format.ts'

const { readTurn } = chatCallerFormat
const { writeRequest, forwardRequest } = chatUpstreamFormat
const upstream = {
  model: 'upstream-model',
  maxOutputTokens: 1000,
  outputLimitMember: 'max_completion_tokens',
} as const

const nothing = readTurn({ messages: [] })
const write = (turn: Partial<Turn>) => writeRequest({ ...nothing, ...turn }, upstream)
const messagesOf = (...messages: TurnMessage[]) => write({ messages })['messages']
const user = (...parts: Part[]): TurnMessage => ({ role: 'user', parts })
const assistant = (...parts: Part[]): TurnMessage => ({ role: 'assistant', parts })
const text = (words: string) => ({ type: 'text' as const, text: words })
const call = (id: string): Part => ({ type: 'tool_call', id, name: 'f', arguments: '{}' })
const result = (callId: string, ...parts: Extract<Part, { type: 'tool_result' }>['parts']) =>
  ({ type: 'tool_result', callId, parts, isError: false }) as const
const image = {
  type: 'image',
  source: { type: 'base64', mediaType: 'image/png', data: 'QUJD' },
  detail: 'high',
} as const
const writtenImage = {
  type: 'image_url',
  image_url: { url: 'data:image/png;base64,QUJD', detail: 'high' },
}
const writtenCall = (id: string) => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: '{}' },
})

test('the least that is asked for is a stream with usage and a bound', () => {
  expect(write({})).toEqual({
    model: 'upstream-model',
    messages: [],
    stream: true,
    stream_options: { include_usage: true },
    max_completion_tokens: 1000,
  })
})

test.each([
  [null, 1000],
  [10, 10],
  [5000, 1000],
])('of %j wanted tokens, %j are asked for', (maxOutputTokens, bound) => {
  expect(write({ maxOutputTokens })['max_completion_tokens']).toBe(bound)
})

test('a rich request comes back the same when it is written and read', () => {
  const schema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }
  const turn: Turn = {
    system: ['Be brief.'],
    messages: [
      user(
        text('Look:'),
        image,
        { type: 'image', source: { type: 'url', url: 'https://x.example/b.jpg' }, detail: null },
        {
          type: 'document',
          source: { type: 'base64', mediaType: 'application/pdf', data: 'UERG' },
          title: 'report.pdf',
        },
        { type: 'document', source: { type: 'file', id: 'file-1' }, title: null },
        {
          type: 'document',
          source: { type: 'base64', mediaType: 'audio/mp3', data: 'SUQz' },
          title: null,
        },
      ),
      assistant(text('I will ask.'), call('c1'), call('c2')),
      user(result('c1', text('one'))),
      user(result('c2', text('two'), text('three'))),
      user(text('Go on.')),
      assistant({ type: 'refusal', text: 'No.' }),
      user(text('Why?')),
    ],
    tools: [{ name: 'f', description: 'Does f.', parameters: schema, isStrict: true }],
    toolChoice: { type: 'tool', name: 'f' },
    canCallToolsInParallel: true,
    maxOutputTokens: 77,
    temperature: 0,
    topP: 0.5,
    topK: null,
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    seed: 0,
    stopSequences: ['x', 'y'],
    user: 'u',
    other: ['x', 'y'],
    reasoning: { effort: 'low', budgetTokens: null, isSummaryWanted: false },
    outputFormat: { type: 'json_schema', name: 'n', schema, isStrict: false },
  }
  const written = writeRequest(turn, upstream)
  expect(readTurn(CreateChatCompletion.parse(JSON.parse(JSON.stringify(written))))).toEqual(turn)
})

test('calls of one side stand in one message, and their results right behind it', () => {
  expect(
    messagesOf(
      assistant(text('a')),
      assistant(text('b'), text('c'), call('c1')),
      assistant(call('c2')),
      user(text('Meanwhile'), result('c1', text('one'), image)),
      user(result('c2')),
    ),
  ).toEqual([
    { role: 'assistant', content: 'a\n\nbc', tool_calls: [writtenCall('c1'), writtenCall('c2')] },
    { role: 'tool', tool_call_id: 'c1', content: 'one' },
    { role: 'tool', tool_call_id: 'c2', content: '' },
    { role: 'user', content: [writtenImage, { type: 'text', text: 'Meanwhile' }] },
  ])
})

test('consecutive messages of one role are merged: texts stay a text, anything else becomes parts', () => {
  expect(messagesOf(user(text('a')), user(text('b')), assistant(text('c')))).toEqual([
    { role: 'user', content: 'a\n\nb' },
    { role: 'assistant', content: 'c' },
  ])
  expect(messagesOf(user(text('a')), user(image), user(text('b'), text('c')))).toEqual([
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        writtenImage,
        { type: 'text', text: 'b' },
        { type: 'text', text: 'c' },
      ],
    },
  ])
  const reasoning = { type: 'reasoning', text: 'Hm.', opaque: null } as const
  expect(messagesOf(user(text('a')), assistant(reasoning), user(text('b')))).toEqual([
    { role: 'user', content: 'a\n\nb' },
  ])
})

test('reasoning is not sent, nor a message that was nothing else', () => {
  const opaque = { origin: 'chat_completions', kind: 'signature', data: 's', id: null } as const
  const reasoning = { type: 'reasoning', text: 'Hm.', opaque } as const
  expect(
    messagesOf(assistant(reasoning), user(text('Hi')), assistant(reasoning, text('Yes'))),
  ).toEqual([
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Yes' },
  ])
})

test('what has no place is written as text where that keeps the meaning', () => {
  const document = (source: Extract<Part, { type: 'document' }>['source'], title: string | null) =>
    ({ type: 'document', source, title }) as const
  const parts = [
    document({ type: 'text', text: 'Once upon' }, 'Tale'),
    document({ type: 'url', url: 'https://x.example/a.pdf' }, null),
    { type: 'image', source: { type: 'file', id: 'file-1' }, detail: null } as const,
  ]
  expect(messagesOf(user(...parts))).toEqual([
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Tale\n\nOnce upon' },
        { type: 'text', text: 'https://x.example/a.pdf' },
      ],
    },
  ])
})

test('arguments that are nothing are written as an empty object', () => {
  const empty: Part = { type: 'tool_call', id: 'c1', name: 'f', arguments: '' }
  expect(messagesOf(assistant(empty))).toEqual([
    { role: 'assistant', content: null, tool_calls: [writtenCall('c1')] },
  ])
})

test('a choice among no tools is not sent, nor more stop sequences than upstreams take', () => {
  const written = write({
    toolChoice: { type: 'required' },
    canCallToolsInParallel: true,
    stopSequences: ['a', 'b', 'c', 'd', 'e'],
  })
  expect(written).not.toHaveProperty('tool_choice')
  expect(written).not.toHaveProperty('parallel_tool_calls')
  expect(written['stop']).toEqual(['a', 'b', 'c', 'd'])
})

const request: Json = {
  model: 'their-name',
  messages: [{ role: 'user', content: 'Hi', cache: 'x' }],
  flagged_categories: ['hate'],
  stream_options: { include_obfuscation: false },
  odd: { kept: [1] },
}

test('a forwarded request is the caller’s but for model, stream, bound and our own member', () => {
  const before = JSON.stringify(request)
  expect(forwardRequest(request, upstream)).toEqual({
    model: 'upstream-model',
    messages: request['messages'],
    stream: true,
    stream_options: { include_obfuscation: false, include_usage: true },
    odd: { kept: [1] },
    max_completion_tokens: 1000,
  })
  expect(JSON.stringify(request)).toBe(before)
})

test.each([
  [{ max_tokens: 5 }, { max_tokens: 5 }],
  [{ max_tokens: 5000 }, { max_tokens: 1000 }],
  [{ max_completion_tokens: 5000 }, { max_completion_tokens: 1000 }],
  [
    { max_completion_tokens: 10, max_tokens: 2000 },
    { max_completion_tokens: 10, max_tokens: 1000 },
  ],
  [{ max_tokens: null }, { max_tokens: null, max_completion_tokens: 1000 }],
])('the bound of %j becomes %j', (sent, bound) => {
  const { max_tokens, max_completion_tokens } = forwardRequest({ ...request, ...sent }, upstream)
  expect({ max_tokens, max_completion_tokens }).toEqual({
    max_tokens: undefined,
    max_completion_tokens: undefined,
    ...bound,
  })
})
