import { expect, test } from 'vitest'

import type { Turn } from '#formats/turn.ts'

import { responseCallerFormat, responseUpstreamFormat } from './response-format.ts'

const upstream = {
  model: 'gpt-upstream',
  maxOutputTokens: 1000,
  outputLimitMember: 'max_completion_tokens',
} as const

const rich: Turn = {
  system: ['You are brief.\n\nAlways.'],
  messages: [
    {
      role: 'user',
      parts: [
        { type: 'text', text: 'What is this?' },
        {
          type: 'image',
          source: { type: 'base64', mediaType: 'image/png', data: 'iVBO' },
          detail: 'high',
        },
        { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' }, detail: 'auto' },
        { type: 'image', source: { type: 'file', id: 'file_1' }, detail: 'low' },
        {
          type: 'document',
          source: { type: 'base64', mediaType: 'application/pdf', data: 'JVBE' },
          title: 'a.pdf',
        },
        { type: 'document', source: { type: 'url', url: 'https://a.example/c.pdf' }, title: 'c' },
        { type: 'document', source: { type: 'file', id: 'file_2' }, title: null },
      ],
    },
    {
      role: 'assistant',
      parts: [
        {
          type: 'reasoning',
          text: 'Look it up.',
          opaque: { origin: 'responses', kind: 'encrypted', data: 'gAAAA', id: 'rs_1' },
        },
        { type: 'text', text: 'One moment.' },
        { type: 'tool_call', id: 'call_1', name: 'look_up', arguments: '{"q":"boat"}' },
        { type: 'tool_call', id: 'call_2', name: 'look_up', arguments: '{"q":"tide"}' },
      ],
    },
    {
      role: 'user',
      parts: [
        {
          type: 'tool_result',
          callId: 'call_1',
          parts: [{ type: 'text', text: 'A boat.' }],
          isError: false,
        },
        {
          type: 'tool_result',
          callId: 'call_2',
          parts: [
            { type: 'text', text: 'A picture:' },
            {
              type: 'image',
              source: { type: 'url', url: 'https://a.example/t.png' },
              detail: 'low',
            },
          ],
          isError: false,
        },
      ],
    },
    { role: 'assistant', parts: [{ type: 'refusal', text: 'No more.' }] },
    { role: 'user', parts: [{ type: 'text', text: 'Please.' }] },
  ],
  tools: [
    {
      name: 'look_up',
      description: 'Looks things up.',
      parameters: { type: 'object', properties: { q: { type: 'string' } } },
      isStrict: true,
    },
  ],
  toolChoice: { type: 'tool', name: 'look_up' },
  canCallToolsInParallel: false,
  maxOutputTokens: 500,
  temperature: 0.5,
  topP: 0.9,
  topK: null,
  presencePenalty: null,
  frequencyPenalty: null,
  seed: null,
  stopSequences: [],
  reasoning: { effort: 'low', budgetTokens: null, isSummaryWanted: true },
  outputFormat: {
    type: 'json_schema',
    name: 'thing',
    schema: { type: 'object' },
    isStrict: true,
  },
  user: 'user-7',
  other: [],
}

test('a rich turn comes back as it was', () => {
  expect(
    responseCallerFormat.readTurn(responseUpstreamFormat.writeRequest(rich, upstream)),
  ).toEqual(rich)
})

test('a request is streamed, not stored, bounded, and asks for its reasoning', () => {
  expect(responseUpstreamFormat.writeRequest(rich, upstream)).toMatchObject({
    model: 'gpt-upstream',
    stream: true,
    store: false,
    max_output_tokens: 500,
    include: ['reasoning.encrypted_content'],
    reasoning: { effort: 'low', summary: 'auto' },
    tool_choice: { type: 'function', name: 'look_up' },
    text: { format: { type: 'json_schema', name: 'thing', schema: {}, strict: true } },
  })
  for (const maxOutputTokens of [null, 5000]) {
    const request = responseUpstreamFormat.writeRequest({ ...rich, maxOutputTokens }, upstream)
    expect(request['max_output_tokens']).toBe(1000)
  }
})

test('several systems are joined, and what the format cannot say is left out', () => {
  const turn: Turn = {
    ...rich,
    system: ['A', 'B'],
    messages: [
      {
        role: 'user',
        parts: [
          { type: 'document', source: { type: 'text', text: 'It rained.' }, title: 'Diary' },
          { type: 'document', source: { type: 'text', text: 'It snowed.' }, title: null },
        ],
      },
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', text: 'Unsealed.', opaque: null },
          {
            type: 'reasoning',
            text: 'Signed elsewhere.',
            opaque: { origin: 'messages', kind: 'signature', data: 's', id: null },
          },
        ],
      },
    ],
    tools: [{ name: 'f', description: null, parameters: {}, isStrict: null }],
    toolChoice: null,
    canCallToolsInParallel: null,
    temperature: null,
    topP: null,
    topK: 5,
    seed: 1,
    presencePenalty: 1,
    frequencyPenalty: 1,
    stopSequences: ['END'],
    reasoning: null,
    outputFormat: null,
    user: null,
  }
  expect(responseUpstreamFormat.writeRequest(turn, upstream)).toEqual({
    model: 'gpt-upstream',
    stream: true,
    store: false,
    max_output_tokens: 500,
    instructions: 'A\n\nB',
    input: [
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'Diary\n\nIt rained.' },
          { type: 'input_text', text: 'It snowed.' },
        ],
      },
    ],
    // Strict is the default of this format only.
    tools: [{ type: 'function', name: 'f', parameters: {}, strict: false }],
  })
})

test('consecutive messages of one role are one item, unless a call or a result stands between', () => {
  const text = (words: string) => ({ type: 'text' as const, text: words })
  const call = { type: 'tool_call', id: 'c', name: 'f', arguments: '{}' } as const
  const messages: Turn['messages'] = [
    { role: 'user', parts: [text('a')] },
    { role: 'user', parts: [text('b')] },
    { role: 'assistant', parts: [{ type: 'reasoning', text: 'Hm.', opaque: null }] },
    { role: 'user', parts: [text('c')] },
    { role: 'assistant', parts: [text('d')] },
    { role: 'assistant', parts: [text('e'), call, text('f')] },
  ]
  const { input } = responseUpstreamFormat.writeRequest({ ...rich, messages }, upstream)
  const said = (role: string, ...words: string[]) => ({
    type: 'message',
    role,
    content: words.map((word) => expect.objectContaining({ text: word }) as unknown),
  })
  expect(input).toEqual([
    said('user', 'a', 'b', 'c'),
    said('assistant', 'd', 'e'),
    { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
    said('assistant', 'f'),
  ])
})

test('without tools nothing is said about tools', () => {
  const request = responseUpstreamFormat.writeRequest({ ...rich, tools: [] }, upstream)
  expect(request).not.toHaveProperty('tool_choice')
  expect(request).not.toHaveProperty('parallel_tool_calls')
})

test('a request that is handed on keeps every member but ours', () => {
  const request = {
    model: 'house-model',
    input: [{ role: 'user', content: 'Hi' }],
    store: true,
    stream: false,
    flagged_categories: ['hate'],
    prompt_cache_key: 'k',
    novelty: { deep: [1] },
  }
  const { flagged_categories: _, ...others } = request
  const forwarded = responseUpstreamFormat.forwardRequest(request, upstream)
  expect(forwarded).toEqual({
    ...others,
    model: 'gpt-upstream',
    store: false,
    stream: true,
    max_output_tokens: 1000,
  })
  expect(forwarded['input']).toBe(request.input)
  const boundOf = (max: number) =>
    responseUpstreamFormat.forwardRequest({ ...request, max_output_tokens: max }, upstream)[
      'max_output_tokens'
    ]
  expect([boundOf(10), boundOf(1001)]).toEqual([10, 1000])
})

test('refusals of upstreams are read in the forms in use', () => {
  const error = { message: 'Bad.', type: 'invalid_request_error', param: null, code: 'bad' }
  expect(responseUpstreamFormat.readError({ error })).toEqual({
    message: 'Bad.',
    type: 'invalid_request_error',
    code: 'bad',
  })
  expect(responseUpstreamFormat.readError({ error: 'Bad.', code: 'bad' })).toEqual({
    message: 'Bad.',
    type: null,
    code: 'bad',
  })
  expect(responseUpstreamFormat.readError({ detail: 'Bad.' })?.message).toBe('Bad.')
  expect(responseUpstreamFormat.readError({ error: {} })).toBeNull()
  expect(responseUpstreamFormat.readError({})).toBeNull()
})

test('the output limit has one name, and nothing runs later', () => {
  const escapes = {
    max_tokens: 9e9,
    max_completion_tokens: 9e9,
    background: false,
  }
  const bare = { model: 'ours', input: 'Hi' }
  expect(responseUpstreamFormat.forwardRequest({ ...bare, ...escapes }, upstream)).toEqual(
    responseUpstreamFormat.forwardRequest(bare, upstream),
  )
})
