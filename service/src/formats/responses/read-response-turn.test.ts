import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import { emptyTurn } from '#formats/turn.ts'

import { responseCallerFormat } from './response-format.ts'

const read = (request: Json) => responseCallerFormat.readTurn({ model: 'm', ...request })
const messagesOf = (...input: Json[]) => read({ input }).messages
const partsOf = (...content: Json[]) => messagesOf({ role: 'user', content })[0]?.parts

test('a text is what the user says', () => {
  expect(read({ input: 'Hi' })).toEqual({
    ...emptyTurn,
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
  })
})

test('instructions and the first system and developer messages are the system, in their order', () => {
  const turn = read({
    instructions: 'A',
    input: [
      { role: 'system', content: 'B' },
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'C' }] },
      { role: 'user', content: 'Hi' },
      { role: 'developer', content: 'Be quick' },
    ],
  })
  expect(turn.system).toEqual(['A', 'B', 'C'])
  expect(turn.messages).toEqual([
    { role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
    { role: 'user', parts: [{ type: 'text', text: 'Be quick' }] },
  ])
})

test('reasoning, text and calls of one assistant turn are one message, their results another', () => {
  const messages = messagesOf(
    { role: 'user', content: 'Go' },
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [
        { type: 'summary_text', text: 'a' },
        { type: 'summary_text', text: 'b' },
      ],
      encrypted_content: 'gAAAA',
    },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Ok' }] },
    { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"x":1}' },
    { type: 'custom_tool_call', call_id: 'c2', name: 'sh', input: 'ls "a"' },
    { type: 'function_call_output', call_id: 'c1', output: 'one' },
    {
      type: 'custom_tool_call_output',
      call_id: 'c2',
      output: [{ type: 'input_text', text: 'two' }],
    },
  )
  expect(messages.slice(1)).toEqual([
    {
      role: 'assistant',
      parts: [
        {
          type: 'reasoning',
          text: 'a\n\nb',
          opaque: { origin: 'responses', kind: 'encrypted', data: 'gAAAA', id: 'rs_1' },
        },
        { type: 'text', text: 'Ok' },
        { type: 'tool_call', id: 'c1', name: 'f', arguments: '{"x":1}' },
        { type: 'tool_call', id: 'c2', name: 'sh', arguments: '{"input":"ls \\"a\\""}' },
      ],
    },
    {
      role: 'user',
      parts: [
        {
          type: 'tool_result',
          callId: 'c1',
          parts: [{ type: 'text', text: 'one' }],
          isError: false,
        },
        {
          type: 'tool_result',
          callId: 'c2',
          parts: [{ type: 'text', text: 'two' }],
          isError: false,
        },
      ],
    },
  ])
})

test('reasoning that says nothing is passed over', () => {
  expect(
    messagesOf({ type: 'reasoning', id: 'rs_1', summary: [] }, { role: 'user', content: 'Hi' }),
  ).toEqual([{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }])
})

test('images and files may be inside the request, at an address or stored', () => {
  expect(
    partsOf(
      { type: 'input_image', image_url: 'data:image/png;base64,iVBO', detail: 'low' },
      { type: 'input_image', image_url: 'https://a.example/b.png', detail: 'original' },
      { type: 'input_image', file_id: 'file_1' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBE' },
      { type: 'input_file', filename: 'b.pdf', file_data: 'JVBE' },
      { type: 'input_file', filename: 'c.txt', file_data: 'data:text/plain;base64,SGk=' },
      { type: 'input_file', file_url: 'https://a.example/c.pdf' },
      { type: 'input_file', file_id: 'file_2' },
    ),
  ).toEqual([
    {
      type: 'image',
      source: { type: 'base64', mediaType: 'image/png', data: 'iVBO' },
      detail: 'low',
    },
    { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' }, detail: 'high' },
    { type: 'image', source: { type: 'file', id: 'file_1' }, detail: null },
    {
      type: 'document',
      source: { type: 'base64', mediaType: 'application/pdf', data: 'JVBE' },
      title: 'a.pdf',
    },
    {
      type: 'document',
      source: { type: 'base64', mediaType: 'application/pdf', data: 'JVBE' },
      title: 'b.pdf',
    },
    { type: 'document', source: { type: 'text', text: 'Hi' }, title: 'c.txt' },
    { type: 'document', source: { type: 'url', url: 'https://a.example/c.pdf' }, title: null },
    { type: 'document', source: { type: 'file', id: 'file_2' }, title: null },
  ])
})

test('tools that only a provider can run are left out', () => {
  const { tools } = read({
    input: '',
    tools: [
      { type: 'web_search' },
      {
        type: 'function',
        name: 'f',
        description: 'd',
        parameters: { type: 'object' },
        strict: true,
      },
      { type: 'function', name: 'g', parameters: null },
    ],
  })
  expect(tools).toEqual([
    { name: 'f', description: 'd', parameters: { type: 'object' }, isStrict: true },
    {
      name: 'g',
      description: null,
      parameters: { type: 'object', properties: {} },
      isStrict: null,
    },
  ])
})

test.each([
  ['auto', { type: 'auto' }],
  ['required', { type: 'required' }],
  ['none', { type: 'none' }],
  [
    { type: 'function', name: 'f' },
    { type: 'tool', name: 'f' },
  ],
  [{ type: 'allowed_tools', mode: 'required', tools: [] }, { type: 'required' }],
  [{ type: 'web_search' }, null],
  [null, null],
])('the tool choice %j is understood', (choice, expected) => {
  expect(read({ input: '', tool_choice: choice }).toolChoice).toEqual(expected)
})

test.each([
  [
    { effort: 'high', summary: 'auto' },
    { effort: 'high', budgetTokens: null, isSummaryWanted: true },
  ],
  [{ effort: 'unheard_of' }, null],
  [{}, null],
])('the reasoning %j is understood', (reasoning, expected) => {
  expect(read({ input: '', reasoning }).reasoning).toEqual(expected)
})

test.each<[string, string, Json]>([
  ['missing_input', 'body.input', {}],
  ['missing_input', 'body.input', { input: null, instructions: null }],
  ['unsupported_parameter', 'body.previous_response_id', { input: 'a', previous_response_id: 'r' }],
  ['unsupported_parameter', 'body.conversation', { input: 'a', conversation: { id: 'c' } }],
  ['unsupported_parameter', 'body.background', { input: 'a', background: true }],
  [
    'unsupported_parameter',
    'body.input[1]',
    {
      input: [
        { role: 'user', content: 'a' },
        { type: 'item_reference', id: 'msg_1' },
      ],
    },
  ],
  ['invalid_request', 'body.input[0].role', { input: [{ role: 'tool', content: 'a' }] }],
  ['invalid_request', 'body.input[0].content', { input: [{ role: 'user' }] }],
  [
    'invalid_request',
    'body.input[1].content[0].type',
    {
      input: [
        { role: 'user', content: 'a' },
        { role: 'user', content: [{ type: 'input_audio' }] },
      ],
    },
  ],
  [
    'invalid_request',
    'body.input[0].content[0].image_url',
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:,a' }] }] },
  ],
  ['invalid_request', 'body.input[0].call_id', { input: [{ type: 'function_call_output' }] }],
  [
    'invalid_request',
    'body.input[0].output',
    { input: [{ type: 'function_call_output', call_id: 'c' }] },
  ],
  ['invalid_request', 'body.tools[0].name', { input: 'a', tools: [{ type: 'function' }] }],
  ['invalid_request', 'body.tool_choice', { input: 'a', tool_choice: 'sometimes' }],
  [
    'invalid_request',
    'body.text.format.schema',
    { input: 'a', text: { format: { type: 'json_schema' } } },
  ],
])('400 %s names %s', (code, param, request) => {
  expect(() => read(request)).toThrow(expect.objectContaining({ code, param, status: 400 }))
})

test('what says nothing about state is accepted', () => {
  const request = { instructions: 'A', previous_response_id: null, background: false, store: true }
  expect(read({ ...request, anything: 1 }).system).toEqual(['A'])
})
