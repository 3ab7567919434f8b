import { CreateMessage } from '@gatehouse/contract/message'
import { expect, test } from 'vitest'

import { packOpaqueState } from '#formats/opaque-state.ts'
import type { Part, Turn } from '#formats/turn.ts'

import { messageCallerFormat, messageUpstreamFormat } from './message-format.ts'

const upstream = {
  model: 'claude-up',
  maxOutputTokens: 8000,
  outputLimitMember: 'max_completion_tokens',
} as const
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const text = (value: string) => ({ type: 'text', text: value })

const rich = {
  model: 'our-model',
  max_tokens: 5000,
  system: [text('attribution'), text('You keep the gate.')],
  messages: [
    {
      role: 'user',
      content: [
        text('Look:'),
        image,
        { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } },
        { type: 'image', source: { type: 'file', file_id: 'file_1' } },
        {
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0' },
          title: 'Plan',
        },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'plain' } },
        { type: 'document', source: { type: 'url', url: 'https://example.org/a.pdf' } },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'c2ln' },
        { type: 'redacted_thinking', data: 'cmVk' },
        text('I look.'),
        { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: ['north', 2] } },
        { type: 'tool_use', id: 'toolu_2', name: 'list', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: [text('open'), image] },
        { type: 'tool_result', tool_use_id: 'toolu_2', is_error: true },
        text('And now?'),
      ],
    },
    { role: 'assistant', content: [text('Now')] },
  ],
  tools: [
    { name: 'look', description: 'Looks.', input_schema: { type: 'object' }, strict: true },
    { name: 'list', input_schema: { type: 'object', properties: {} } },
  ],
  tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  stop_sequences: ['END'],
  thinking: { type: 'enabled', budget_tokens: 2048, display: 'summarized' },
  output_config: { effort: 'high', format: { type: 'json_schema', schema: { type: 'object' } } },
  metadata: { user_id: 'somebody' },
}

const turnOf = (changes: object): Turn =>
  messageCallerFormat.readTurn(
    CreateMessage.parse({ model: 'm', messages: [{ role: 'user', content: 'a' }], ...changes }),
  )
const written = (changes: Partial<Turn>) =>
  messageUpstreamFormat.writeRequest({ ...turnOf({}), ...changes }, upstream)
const partsOf = (...content: object[]) =>
  turnOf({ messages: [{ role: 'user', content }] }).messages.flatMap(({ parts }) => parts)
const user = (...parts: Part[]) => ({ role: 'user' as const, parts })
const assistant = (...parts: Part[]) => ({ role: 'assistant' as const, parts })
const says = (value: string): Part => ({ type: 'text', text: value })

test('a rich request comes back from a turn as it was', () => {
  const turn = messageCallerFormat.readTurn(CreateMessage.parse(rich))
  expect(messageUpstreamFormat.writeRequest(turn, upstream)).toEqual({
    ...rich,
    model: 'claude-up',
    stream: true,
  })
})

test('a turn has everything the format can say', () => {
  expect(turnOf({ ...rich, messages: [{ role: 'user', content: 'a' }] })).toEqual({
    system: ['attribution', 'You keep the gate.'],
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }],
    tools: [
      { name: 'look', description: 'Looks.', parameters: { type: 'object' }, isStrict: true },
      {
        name: 'list',
        description: null,
        parameters: { type: 'object', properties: {} },
        isStrict: null,
      },
    ],
    toolChoice: { type: 'auto' },
    canCallToolsInParallel: false,
    maxOutputTokens: 5000,
    temperature: null,
    topP: null,
    topK: null,
    presencePenalty: null,
    frequencyPenalty: null,
    seed: null,
    stopSequences: ['END'],
    other: ['END'],
    reasoning: { effort: 'high', budgetTokens: 2048, isSummaryWanted: true },
    outputFormat: {
      type: 'json_schema',
      name: 'output',
      schema: { type: 'object' },
      isStrict: null,
    },
    user: 'somebody',
  })
})

test('a request that says little has a turn that says little', () => {
  const turn = turnOf({ system: 'Be brief.', temperature: 2, top_p: 0.5, top_k: 3 })
  expect(turn).toMatchObject({ system: ['Be brief.'], temperature: 2, topP: 0.5, topK: 3 })
  expect(turn).toMatchObject({ toolChoice: null, reasoning: null, outputFormat: null, user: null })
  expect(turn.canCallToolsInParallel).toBeNull()
})

test.each([
  [{ thinking: { type: 'disabled' } }, { effort: 'none', budgetTokens: null }],
  [{ thinking: { type: 'adaptive' } }, { effort: null, budgetTokens: null, isSummaryWanted: true }],
  [{ thinking: { type: 'adaptive', display: 'omitted' } }, { isSummaryWanted: false }],
  [{ output_config: { effort: 'max' } }, { effort: 'max', budgetTokens: null }],
])('%j asks for reasoning of the right kind', (changes, reasoning) => {
  expect(turnOf(changes).reasoning).toMatchObject(reasoning)
})

test('kinds of thinking and efforts that we do not know ask for nothing', () => {
  expect(turnOf({ thinking: { type: 'between_tools' } }).reasoning).toBeNull()
  expect(turnOf({ output_config: { effort: 'heroic' } }).reasoning).toBeNull()
})

const f = { name: 'f', input_schema: { type: 'object' } }
const search = { type: 'web_search_20260318', name: 'web_search' }

test.each([
  [{ type: 'any' }, { type: 'required' }],
  [{ type: 'none' }, { type: 'none' }],
  [
    { type: 'tool', name: 'f' },
    { type: 'tool', name: 'f' },
  ],
  [{ type: 'tool', name: 'web_search' }, null],
])(
  'the choice %j is %j in a turn, which has only the tools the caller runs',
  (choice, expected) => {
    const turn = turnOf({ tools: [f, search], tool_choice: choice })
    expect(turn.toolChoice).toEqual(expected)
    expect(turn.tools.map(({ name }) => name)).toEqual(['f'])
  },
)

test.each([{ type: 'tool', name: 'g' }, { type: 'tool' }])('%j names no tool', (choice) => {
  expect(() => turnOf({ tools: [f], tool_choice: choice })).toThrow(
    expect.objectContaining({ code: 'invalid_request', param: 'body.tool_choice.name' }),
  )
})

test('search results are read as text, also in the result of a tool', () => {
  const found = { type: 'search_result', source: 'https://x', title: 'T', content: [text('a')] }
  expect(partsOf(found, { type: 'tool_result', tool_use_id: 't', content: [found] })).toEqual([
    { type: 'text', text: 'T\nhttps://x\na' },
    {
      type: 'tool_result',
      callId: 't',
      parts: [{ type: 'text', text: 'T\nhttps://x\na' }],
      isError: false,
    },
  ])
})

test('a document of blocks is its text, followed by its pictures', () => {
  const source = { type: 'content', content: [text('a'), image, text('b')] }
  expect(partsOf({ type: 'document', source, title: 'T' })).toMatchObject([
    { type: 'document', source: { type: 'text', text: 'a\nb' }, title: 'T' },
    { type: 'image', source: { mediaType: 'image/png' } },
  ])
})

test('an empty message at the end says nothing', () => {
  const body = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: '' },
  ]
  expect(turnOf({ messages: body }).messages).toHaveLength(1)
})

const instructed = [
  { role: 'system', content: 'Be kind.' },
  { role: 'user', content: 'a' },
  { role: 'system', content: [text('Be brief.'), text('Be clear.')] },
  { role: 'assistant', content: 'b' },
  { role: 'user', content: 'c' },
  { role: 'system', content: [], output_config: { effort: 'low' } },
  { role: 'system', content: [{ ...text(''), unknown: 'words' }] },
]

test('instructions between messages stay in their place; those at the beginning are the system prompt', () => {
  const turn = turnOf({ system: 'First.', messages: instructed })
  expect(turn.system).toEqual(['First.', 'Be kind.'])
  expect(turn.messages).toEqual([
    user(says('a'), { type: 'foreign', text: '{"unknown":"words"}' }),
    { role: 'system', parts: [says('Be brief.'), says('Be clear.')] },
    assistant(says('b')),
    user(says('c')),
  ])
})

test('instructions behind an empty message are not at the beginning', () => {
  const silent = { role: 'user', content: [text('')] }
  const turn = turnOf({
    system: 'First.',
    messages: [silent, { role: 'system', content: 'Be kind.' }, { role: 'user', content: 'a' }],
  })
  expect(turn.system).toEqual(['First.'])
  expect(turn.messages[0]).toEqual({ role: 'system', parts: [says('Be kind.')] })
})

test('neighbours of one role become one message, with the results of tools first', () => {
  const result: Part = { type: 'tool_result', callId: 'a', parts: [], isError: false }
  const conversation = [
    user(says('1')),
    user(says('2')),
    assistant({ type: 'tool_call', id: 'a', name: 'f', arguments: '' }),
    user(says('3')),
    user(result),
  ]
  expect(written({ messages: conversation })['messages']).toEqual([
    { role: 'user', content: [text('1'), text('2')] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }, text('3')] },
  ])
})

test('what the format would refuse is made to fit or left out', () => {
  const parts: Part[] = [
    says(''),
    { type: 'refusal', text: 'No.' },
    { type: 'tool_call', id: 'f:0', name: 'f', arguments: '{"cut' },
    { type: 'reasoning', text: 'unsigned', opaque: null },
    {
      type: 'reasoning',
      text: 'foreign',
      opaque: { origin: 'responses', kind: 'signature', data: 'x', id: null },
    },
  ]
  expect(written({ messages: [user(says('a')), assistant(...parts)] })['messages']).toEqual([
    { role: 'user', content: [text('a')] },
    {
      role: 'assistant',
      content: [text('No.'), { type: 'tool_use', id: 'f_0', name: 'f', input: { value: '{"cut' } }],
    },
  ])
  expect(written({ stopSequences: ['\n', 'x'] })['stop_sequences']).toEqual(['x'])
  expect(written({ outputFormat: { type: 'json_object' } })).not.toHaveProperty('output_config')
})

test('an encoded document of text is sent as text', () => {
  const data = Buffer.from('a,b').toString('base64')
  const source = { type: 'base64' as const, mediaType: 'text/csv', data }
  const request = written({ messages: [user({ type: 'document', source, title: null })] })
  expect(request['messages']).toMatchObject([
    { content: [{ type: 'document', source: { type: 'text', data: 'a,b' } }] },
  ])
})

test('instructions alone become the message that there must be', () => {
  expect(written({ system: ['Speak.'], messages: [] })).toMatchObject({
    messages: [{ role: 'user', content: [text('Speak.')] }],
  })
  expect(written({ system: ['Speak.'], messages: [] })).not.toHaveProperty('system')
})

test('a temperature above 1 is 1, and stands alone', () => {
  expect(written({ temperature: 1.7, topP: 0.5 })).toMatchObject({ temperature: 1 })
  expect(written({ temperature: 1.7, topP: 0.5 })).not.toHaveProperty('top_p')
  expect(written({ topP: 0.5, topK: 4 })).toMatchObject({ top_p: 0.5, top_k: 4 })
})

const reasoning = { effort: null, budgetTokens: 4096, isSummaryWanted: true }

test('a model that thinks is not told how to sample', () => {
  const request = written({ reasoning, temperature: 0.2, topK: 3, topP: 0.9 })
  expect(Object.keys(request).toSorted()).toEqual(
    ['max_tokens', 'messages', 'model', 'stream', 'thinking'].toSorted(),
  )
})

test('thinking keeps to what the format allows', () => {
  const tools = [{ name: 'f', description: null, parameters: {}, isStrict: null }]
  const call: Part = { type: 'tool_call', id: 'a', name: 'f', arguments: '{}' }
  const none = [
    written({ reasoning, tools, toolChoice: { type: 'required' } }),
    written({ reasoning, maxOutputTokens: 500 }),
    written({ reasoning, messages: [user(says('a')), assistant(call)] }),
  ]
  for (const request of none) expect(request).not.toHaveProperty('thinking')
  expect(written({ reasoning, maxOutputTokens: 2000 })['thinking']).toMatchObject({
    type: 'enabled',
    budget_tokens: 1999,
  })
  const minimal = { effort: 'minimal' as const, budgetTokens: null, isSummaryWanted: false }
  expect(written({ reasoning: minimal })).toMatchObject({
    thinking: { type: 'adaptive', display: 'omitted' },
    output_config: { effort: 'low' },
  })
  const off = { ...minimal, effort: 'none' as const }
  expect(written({ reasoning: off, temperature: 0.5 })).toMatchObject({
    thinking: { type: 'disabled' },
    temperature: 0.5,
  })
})

test.each([
  [null, 8000],
  [100, 100],
  [9000, 8000],
])('there is always a maximum: asked for %s, it is %s', (wanted, expected) => {
  expect(written({ maxOutputTokens: wanted })['max_tokens']).toBe(expected)
  const body = { messages: [], ...(wanted && { max_tokens: wanted }) }
  expect(messageUpstreamFormat.forwardRequest(body, upstream)['max_tokens']).toBe(expected)
})

test("a caller's own request travels untouched but for the model and what is ours", () => {
  const body = { ...rich, flagged_categories: ['hate'], stream: false, temperature: 0.5, new: [1] }
  const before = structuredClone(body)
  const forwarded = messageUpstreamFormat.forwardRequest(body, upstream)
  expect(forwarded).toEqual({
    ...rich,
    model: 'claude-up',
    stream: true,
    temperature: 0.5,
    new: [1],
  })
  expect(forwarded['messages']).toBe(body.messages)
  expect(body).toEqual(before)
})

test.each([
  [0, 0],
  [1, 1],
  [1.01, 1],
  [2, 1],
])('a temperature of %s is sent as %s, also in a forwarded request', (temperature, sent) => {
  const forwarded = messageUpstreamFormat.forwardRequest({ messages: [], temperature }, upstream)
  expect(forwarded['temperature']).toBe(sent)
  expect(messageUpstreamFormat.forwardRequest({ messages: [] }, upstream)).not.toHaveProperty(
    'temperature',
  )
})

test('thinking that this format never signed does not travel', () => {
  const foreign = packOpaqueState({ origin: 'responses', kind: 'encrypted', data: 'x', id: null })
  const own = { type: 'thinking', thinking: 'own', signature: 'c2ln' }
  const body = {
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'x', signature: foreign },
          { type: 'thinking', thinking: 'x', signature: '' },
          { type: 'redacted_thinking', data: foreign },
          { type: 'redacted_thinking', data: 'own' },
          own,
        ],
      },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'x', signature: foreign }] },
    ],
  }
  expect(messageUpstreamFormat.forwardRequest(body, upstream)['messages']).toEqual([
    { role: 'user', content: 'a' },
    { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'own' }, own] },
  ])
})

test('numbers in the arguments of a call are sent as they were written', () => {
  const sent = (given: string) =>
    JSON.stringify(
      written({
        messages: [assistant({ type: 'tool_call', id: 'a', name: 'f', arguments: given })],
      })['messages'],
    )
  expect(sent('{"id":1234567890123456789}')).toContain('"input":{"id":1234567890123456789}')
  expect(sent('1234567890123456789')).toContain('"input":{"value":1234567890123456789}')
})
