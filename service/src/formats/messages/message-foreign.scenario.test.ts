import { CreateMessage } from '@gatehouse/contract/message'
import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import { upstreamFormats } from '#formats/formats.ts'
import type { Turn } from '#formats/turn.ts'

import { messageCallerFormat } from './message-format.ts'

const upstream = {
  model: 'm',
  maxOutputTokens: 100,
  outputLimitMember: 'max_completion_tokens',
} as const

const read = (changes: Json): Turn =>
  messageCallerFormat.readTurn(
    CreateMessage.parse({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...changes }),
  )
const foreignIn = (turn: Turn) =>
  turn.messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'foreign' ? [JSON.parse(part.text) as Json] : [])),
  )
const foreignOf = (...content: Json[]) => foreignIn(read({ messages: [{ role: 'user', content }] }))

test.each<Json>([
  { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'gold' } },
  { type: 'web_search_tool_result', tool_use_id: 's1', content: [{ title: 'Gold' }] },
  { type: 'mcp_tool_use', id: 'm1', name: 'read', server_name: 'files', input: {} },
  { type: 'container_upload', file_id: 'file_1' },
  { type: 'compaction', content: 'What was said before.' },
])('a block that only its provider understands is kept whole: %j', (block) => {
  expect(foreignOf(block)).toEqual([block])
})

test('what a readable block says beyond what is read is kept', () => {
  const source = { type: 'text', media_type: 'text/plain', data: 'plain' }
  const document = { type: 'document', source, title: 'Plan', context: 'From the archive.' }
  const control = { cache_control: { type: 'ephemeral' } }
  expect(foreignOf({ ...document, ...control, citations: { enabled: true } })).toEqual([
    { context: 'From the archive.' },
  ])
  const cited = [{ type: 'char_location', cited_text: 'plain' }]
  expect(foreignOf({ type: 'text', text: 'Hi', citations: cited })).toEqual([{ citations: cited }])
  expect(foreignOf({ type: 'text', text: 'Hi', citations: null, ...control })).toEqual([])
})

test('what a tool answers beyond what is read stands beside its result', () => {
  const reference = { type: 'tool_reference', tool_name: 'look' }
  const content = [{ type: 'text', text: 'found' }, reference]
  const turn = read({
    messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content }] }],
  })
  expect(turn.messages[0]?.parts).toEqual([
    {
      type: 'tool_result',
      callId: 't',
      parts: [{ type: 'text', text: 'found' }],
      isError: false,
    },
    { type: 'foreign', text: JSON.stringify(reference) },
  ])
})

test('tools that the provider runs, and servers it asks, are kept in the first message', () => {
  const search = { type: 'web_search_20250305', name: 'web_search', allowed_domains: ['a.example'] }
  const examples = [{ at: 'north' }]
  const look = { name: 'look', input_schema: { type: 'object' } }
  const servers = [{ type: 'url', url: 'https://mcp.example', name: 'files' }]
  const turn = read({
    tools: [search, { ...look, input_examples: examples }],
    mcp_servers: servers,
  })
  expect(turn.tools.map(({ name }) => name)).toEqual(['look'])
  expect(turn.messages[0]?.parts[0]).toEqual({ type: 'text', text: 'Hi' })
  expect(foreignIn(turn)).toEqual([search, { input_examples: examples }, { mcp_servers: servers }])
})

test('no format writes what is foreign', () => {
  const turn = read({
    system: 'Be brief.',
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'server_tool_use', id: 's', name: 'n', input: {} }] },
      { role: 'user', content: [{ type: 'container_upload', file_id: 'secret_file' }] },
    ],
  })
  expect(foreignIn(turn)).toHaveLength(2)
  for (const { writeRequest } of upstreamFormats.values()) {
    const { messages: sent, input } = writeRequest(turn, upstream)
    expect(JSON.stringify(sent ?? input)).not.toMatch(/secret_file|server_tool_use|foreign/)
    expect(JSON.stringify(sent ?? input)).toContain('Hi')
  }
})

test('members of the request that a turn does not have are kept, settings are not', () => {
  const edits = [{ type: 'compact_20260112', instructions: 'Keep the numbers.' }]
  const output_config = { effort: 'low', tone: 'Be brief.' }
  const turn = read({ context_management: { edits }, output_config, temperature: 0.5, top_k: 3 })
  expect(foreignIn(turn)).toEqual([{ tone: 'Be brief.' }, { context_management: { edits } }])
})
