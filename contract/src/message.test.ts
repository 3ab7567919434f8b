import { expect, test } from 'vitest'
import { z } from 'zod'

import { CreateMessage, createMessage, Message } from './message.ts'

const request = (changes: object) => ({
  model: 'm',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
  ...changes,
})
const says = (...content: unknown[]) => request({ messages: [{ role: 'user', content }] })

function pathOf(body: unknown): string | undefined {
  const [issue] = CreateMessage.safeParse(body).error?.issues ?? []
  return issue && pathIn(issue).join('.')
}

/** Where an issue leads: of a union, the alternative that fits furthest is meant. */
function pathIn(issue: z.core.$ZodIssue): PropertyKey[] {
  if (issue.code !== 'invalid_union') return issue.path
  const inner = issue.errors.flatMap(([first]) => (first ? [pathIn(first)] : []))
  const [longest = []] = inner.toSorted((one, other) => other.length - one.length)
  return [...issue.path, ...longest]
}

test('a request of Claude Code is accepted and keeps its unknown members', () => {
  const body = request({
    system: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }],
    thinking: { type: 'adaptive', display: 'summarized' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    output_config: { effort: 'xhigh', format: null },
    tools: [
      { name: 'read', input_schema: { type: 'object' }, strict: true, defer_loading: true },
      { type: 'web_search_20260318', name: 'web_search', max_uses: 3 },
      { type: 'mcp_toolset', mcp_server_name: 's' },
    ],
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    service_tier: 'auto',
    something_new: { a: 1 },
  })
  expect(CreateMessage.parse(body)).toEqual(body)
})

test('every kind of block is accepted', () => {
  const text = { type: 'text', text: 'x', citations: [] }
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } }
  const sources = [
    { type: 'base64', media_type: 'application/pdf', data: 'AA' },
    { type: 'text', media_type: 'text/plain', data: 'x' },
    { type: 'content', content: 'x' },
    { type: 'content', content: [text, image] },
    { type: 'url', url: 'https://example.org/a.pdf' },
    { type: 'file', file_id: 'file_1' },
  ]
  const search = { type: 'search_result', source: 's', title: 't', content: [text] }
  const body = says(
    text,
    image,
    search,
    ...sources.map((source) => ({ type: 'document', source, title: null })),
    { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: [1] } },
    { type: 'tool_result', tool_use_id: 'toolu_1' },
    { type: 'tool_result', tool_use_id: 'toolu_1', content: 'x', is_error: true },
    { type: 'tool_result', tool_use_id: 'toolu_1', content: [text, image, search] },
    { type: 'thinking', thinking: '', signature: 'c2ln' },
    { type: 'redacted_thinking', data: 'ZGF0YQ' },
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
    { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
  )
  expect(CreateMessage.parse(body)).toEqual(body)
})

test.each([
  [
    'an unknown block',
    says({ type: 'text', text: 'a' }, { type: 'video' }),
    'messages.0.content.1.type',
  ],
  ['a block without a type', says({ text: 'a' }), 'messages.0.content.0.type'],
  ['a text block without text', says({ type: 'text' }), 'messages.0.content.0.text'],
  [
    'an unknown block in a tool result',
    says({ type: 'tool_result', tool_use_id: 't', content: [{ type: 'video' }] }),
    'messages.0.content.0.content.0.type',
  ],
  [
    'an unknown source',
    says({ type: 'image', source: { type: 'tape' } }),
    'messages.0.content.0.source.type',
  ],
  [
    'a list as the input of a tool',
    says({ type: 'tool_use', id: 'a', name: 'f', input: [] }),
    'messages.0.content.0.input',
  ],
  [
    'content of another kind',
    request({ messages: [{ role: 'user', content: 5 }] }),
    'messages.0.content',
  ],
  ['no content', request({ messages: [{ role: 'user' }] }), 'messages.0.content'],
  [
    'an unknown role',
    request({ messages: [{ role: 'developer', content: 'a' }] }),
    'messages.0.role',
  ],
  [
    'instructions with more than text',
    request({
      messages: [
        { role: 'user', content: 'a' },
        { role: 'system', content: [{ type: 'text', text: 'a' }, { type: 'compaction' }] },
      ],
    }),
    'messages.1.content.1.type',
  ],
  ['an image as system prompt', request({ system: [{ type: 'image' }] }), 'system.0.type'],
  ['no messages', request({ messages: [] }), 'messages'],
  [
    'an unknown category',
    request({ flagged_categories: ['hate', 'spam'] }),
    'flagged_categories.1',
  ],
  ['too high a temperature', request({ temperature: 2.1 }), 'temperature'],
  ['no room to answer', request({ max_tokens: 0 }), 'max_tokens'],
  ['a tool without a name', request({ tools: [{ input_schema: {} }] }), 'tools.0.name'],
  ['a tool without a schema', request({ tools: [{ name: 'f' }] }), 'tools.0.input_schema'],
  ['an unknown choice', request({ tool_choice: { type: 'some' } }), 'tool_choice.type'],
  [
    'an unknown output format',
    request({ output_config: { format: { type: 'xml' } } }),
    'output_config.format.type',
  ],
])('%s: the refusal names its path', (_what, body, path) => {
  expect(pathOf(body)).toBe(path)
})

test('a temperature up to 2 and an empty list of categories are allowed', () => {
  expect(pathOf(request({ temperature: 2, flagged_categories: [] }))).toBeUndefined()
})

const user = { role: 'user', content: 'a' }
const assistant = (content: unknown) => ({ role: 'assistant', content })
const system = (content: unknown) => ({ role: 'system', content })

test.each([
  ['a trailing empty text of the assistant', [user, assistant('')], undefined],
  ['a trailing empty list of the assistant', [user, assistant([])], undefined],
  [
    'an empty text of the assistant before the end',
    [user, assistant(''), user],
    'messages.1.content',
  ],
  ['an empty text of the user', [{ role: 'user', content: '' }], 'messages.0.content'],
  ['an empty list of the user', [{ role: 'user', content: [] }, user], 'messages.0.content'],
  ['instructions in their place', [user, system('a'), assistant('b'), user], undefined],
  ['instructions as text blocks', [user, system([{ type: 'text', text: 'a' }])], undefined],
  ['empty instructions', [user, system([])], 'messages.1.content'],
  ['settings alone', [user, { ...system([]), output_config: { effort: 'low' } }], undefined],
])('%s: accepted or refused by its position', (_what, messages, path) => {
  expect(pathOf(request({ messages }))).toBe(path)
})

test('the schemas can be printed for OpenAPI, with every kind of content', () => {
  const printed = JSON.stringify(z.toJSONSchema(CreateMessage, { io: 'input' }))
  expect(printed).toContain('redacted_thinking')
  expect(printed).toContain('tool_use_id')
  expect(JSON.stringify(z.toJSONSchema(Message))).toContain('estimated_cost_usd')
})

test('the endpoint uses the dialect of its path', () => {
  expect(createMessage).toMatchObject({
    method: 'POST',
    path: '/v1/messages',
    dialect: 'messages',
    id: 'createMessage',
  })
})
