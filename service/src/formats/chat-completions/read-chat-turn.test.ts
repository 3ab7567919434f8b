import { CreateChatCompletion } from '@gatehouse/contract/chat-completion'
import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import { packOpaqueState } from '#formats/opaque-state.ts'
import { emptyTurn, type OpaqueState } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { readChatTurn } from './read-chat-turn.ts'

const read = (more: Json) => {
  const request = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...more }
  return readChatTurn(CreateChatCompletion.parse(request))
}
const messages = (...sent: Json[]) => read({ messages: sent }).messages
const partsOf = (content: unknown) => messages({ role: 'user', content })[0]?.parts

test('a request that says nothing else asks for nothing else', () => {
  expect(read({})).toEqual({
    ...emptyTurn,
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
  })
})

test('everything the format can say is read', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const turn = read({
    temperature: 0.5,
    top_p: 0.9,
    presence_penalty: 1,
    frequency_penalty: -1,
    seed: 7,
    max_completion_tokens: 100,
    max_tokens: 50,
    stop: ['a', 'b'],
    user: 'u1',
    parallel_tool_calls: false,
    reasoning_effort: 'high',
    tools: [
      {
        type: 'function',
        function: { name: 'f', description: 'd', parameters: schema, strict: true },
      },
      { type: 'function', function: { name: 'g' } },
      { type: 'web_search' },
    ],
    tool_choice: { type: 'function', function: { name: 'f' } },
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } },
  })
  expect(turn).toMatchObject({
    temperature: 0.5,
    topP: 0.9,
    presencePenalty: 1,
    frequencyPenalty: -1,
    seed: 7,
    maxOutputTokens: 100,
    stopSequences: ['a', 'b'],
    user: 'u1',
    canCallToolsInParallel: false,
    toolChoice: { type: 'tool', name: 'f' },
    reasoning: { effort: 'high', budgetTokens: null, isSummaryWanted: false },
    outputFormat: { type: 'json_schema', name: 'n', schema, isStrict: true },
  })
  expect(turn.tools).toEqual([
    { name: 'f', description: 'd', parameters: schema, isStrict: true },
    {
      name: 'g',
      description: null,
      parameters: { type: 'object', properties: {} },
      isStrict: null,
    },
  ])
})

test('one stop sequence may come alone', () => {
  expect(read({ stop: 'END' }).stopSequences).toEqual(['END'])
})

test.each([
  ['none', { type: 'none' }],
  ['auto', { type: 'auto' }],
  ['required', { type: 'required' }],
  [null, null],
])('the tool choice %j is read', (sent, choice) => {
  expect(read({ tool_choice: sent }).toolChoice).toEqual(choice)
})

test('a choice among some tools leaves only those', () => {
  const tool = (name: string) => ({ type: 'function', function: { name } })
  const { tools, toolChoice } = read({
    tools: [tool('f'), tool('g')],
    tool_choice: {
      type: 'allowed_tools',
      allowed_tools: { mode: 'required', tools: [tool('g')] },
    },
  })
  expect(tools.map(({ name }) => name)).toEqual(['g'])
  expect(toolChoice).toEqual({ type: 'required' })
})

test('instructions are the system’s at the start and the user’s later', () => {
  const turn = read({
    messages: [
      { role: 'developer', content: 'First.' },
      {
        role: 'system',
        content: [
          { type: 'text', text: 'Second.' },
          { type: 'text', text: 'Third.' },
        ],
      },
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'Late.' },
    ],
  })
  expect(turn.system).toEqual(['First.', 'Second.', 'Third.'])
  expect(turn.messages[1]).toEqual({ role: 'user', parts: [{ type: 'text', text: 'Late.' }] })
})

test.each([
  [
    { type: 'image_url', image_url: { url: 'https://x.example/a.png', detail: 'low' } },
    { type: 'image', source: { type: 'url', url: 'https://x.example/a.png' }, detail: 'low' },
  ],
  [
    { type: 'image_url', image_url: { url: 'data:image/PNG;base64,QUJD', detail: 'original' } },
    {
      type: 'image',
      source: { type: 'base64', mediaType: 'image/png', data: 'QUJD' },
      detail: null,
    },
  ],
  [
    { type: 'image_url', image_url: 'https://x.example/a.png' },
    { type: 'image', source: { type: 'url', url: 'https://x.example/a.png' }, detail: null },
  ],
  [
    { type: 'file', file: { file_data: 'data:application/pdf;base64,QUJD', filename: 'a.pdf' } },
    {
      type: 'document',
      source: { type: 'base64', mediaType: 'application/pdf', data: 'QUJD' },
      title: 'a.pdf',
    },
  ],
  [
    { type: 'file', file: { file_data: 'data:text/plain;charset=utf-8;base64,w6Q=' } },
    { type: 'document', source: { type: 'text', text: 'ä' }, title: null },
  ],
  [
    { type: 'file', file: { file_id: 'file-1' } },
    { type: 'document', source: { type: 'file', id: 'file-1' }, title: null },
  ],
  [
    { type: 'input_audio', input_audio: { data: 'QUJD', format: 'wav' } },
    {
      type: 'document',
      source: { type: 'base64', mediaType: 'audio/wav', data: 'QUJD' },
      title: null,
    },
  ],
])('the part %j is read', (sent, part) => {
  expect(partsOf([sent])).toEqual([part])
})

test.each([
  [{ type: 'video', video: {} }, '.type'],
  [{ type: 'text' }, '.text'],
  [{ type: 'image_url', image_url: {} }, '.image_url.url'],
  [{ type: 'image_url', image_url: { url: 'data:image/png,abc' } }, '.image_url.url'],
  [{ type: 'file', file: {} }, '.file.file_id'],
  [{ type: 'file' }, '.file'],
  [{ type: 'input_audio', input_audio: { data: 'x' } }, '.input_audio.format'],
])('the part %j is refused by its path', (sent, path) => {
  const good = { type: 'text', text: 'x' }
  const refusal = catchError(() => partsOf([good, sent]))
  expect(refusal).toMatchObject({
    code: 'invalid_request',
    param: `body.messages[0].content[1]${path}`,
  })
})

const catchError = (action: () => unknown): unknown => {
  try {
    return action()
  } catch (error) {
    return error
  }
}

test('an answer that comes back keeps its reasoning, text, refusal and calls in order', () => {
  const opaque: OpaqueState = { origin: 'messages', kind: 'signature', data: 's==', id: null }
  const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
  const answered = {
    role: 'assistant',
    content: 'Text.',
    refusal: 'No.',
    tool_calls: [call],
    reasoning_content: 'Hm.',
    reasoning_signature: packOpaqueState(opaque),
  }
  expect(messages(answered)).toEqual([
    {
      role: 'assistant',
      parts: [
        { type: 'reasoning', text: 'Hm.', opaque },
        { type: 'text', text: 'Text.' },
        { type: 'refusal', text: 'No.' },
        { type: 'tool_call', id: 'c1', name: 'f', arguments: '{"a":1}' },
      ],
    },
  ])
})

test('reasoning without a signature, or with one that is not ours, is read as such', () => {
  const parts = (more: Json) => messages({ role: 'assistant', content: null, ...more })[0]?.parts
  expect(parts({ reasoning: 'Hm.' })).toEqual([{ type: 'reasoning', text: 'Hm.', opaque: null }])
  const own = { origin: 'chat_completions', kind: 'signature', data: 'a b@3', id: null }
  expect(parts({ reasoning_content: 'Hm.', reasoning_signature: 'a b@3' })).toEqual([
    { type: 'reasoning', text: 'Hm.', opaque: own },
  ])
})

test('results of tools are read with the id of their call', () => {
  const result = (callId: string, text: string) => ({
    role: 'user',
    parts: [{ type: 'tool_result', callId, parts: [{ type: 'text', text }], isError: false }],
  })
  expect(
    messages(
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
      { role: 'tool', tool_call_id: 'c2', content: [{ type: 'text', text: 'two' }] },
    ),
  ).toEqual([result('c1', 'one'), result('c2', 'two')])
})

test('the old calls of functions and their results belong together', () => {
  const turn = read({
    functions: [{ name: 'f' }],
    function_call: { name: 'f' },
    messages: [
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: 'done' },
    ],
  })
  expect(turn.tools.map(({ name }) => name)).toEqual(['f'])
  expect(turn.toolChoice).toEqual({ type: 'tool', name: 'f' })
  expect(turn.messages.map(({ parts }) => parts[0])).toMatchObject([
    { type: 'tool_call', id: 'call_f', name: 'f', arguments: '{}' },
    { type: 'tool_result', callId: 'call_f', parts: [{ text: 'done' }] },
  ])
})

test('more than one choice is not offered', () => {
  expect(catchError(() => read({ n: 2 }))).toMatchObject({
    code: 'unsupported_parameter',
    param: 'body.n',
    status: 400,
  })
  expect(() => read({ n: 1 })).not.toThrow()
})

test.each([
  [{ messages: [{ role: 'tool', content: 'x' }] }, 'body.messages[0].tool_call_id'],
  [{ messages: [{ role: 'function', content: 'x' }] }, 'body.messages[0].name'],
  [
    { messages: [{ role: 'assistant', tool_calls: [{ id: 'a' }] }] },
    'body.messages[0].tool_calls[0].function',
  ],
  [{ tools: [{ type: 'function' }] }, 'body.tools[0].function'],
  [{ tool_choice: { type: 'function' } }, 'body.tool_choice'],
  [{ response_format: { type: 'json_schema' } }, 'body.response_format.json_schema'],
])('%j is refused by its path', (more, param) => {
  const refusal = catchError(() => read(more))
  expect(refusal).toBeInstanceOf(ApiError)
  expect(refusal).toMatchObject({ code: 'invalid_request', param })
})
