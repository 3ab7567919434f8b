import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'

import { responseCallerFormat } from './response-format.ts'

const read = (request: Json) => responseCallerFormat.readTurn({ model: 'm', ...request })
const hi = { role: 'user', content: 'Hi' }
const foreignOf = (request: Json) =>
  read(request).messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'foreign' ? [JSON.parse(part.text) as unknown] : [])),
  )

test.each<Json>([
  { type: 'web_search_call', id: 'ws_1', action: { type: 'search', query: 'gold' } },
  { type: 'computer_call', call_id: 'c1', action: { type: 'click' } },
  { type: 'additional_tools', tools: [{ type: 'function', name: 'f' }] },
])('an item that is passed over is kept whole: %j', (item) => {
  expect(foreignOf({ input: [hi, item] })).toEqual([item])
})

test('an item before all others leaves the instructions after it where they are', () => {
  const item = { type: 'additional_tools', tools: [] }
  const turn = read({ input: [item, { role: 'developer', content: 'Be brief.' }, hi] })
  expect(turn.system).toEqual(['Be brief.'])
  expect(turn.messages).toEqual([
    {
      role: 'user',
      parts: [
        { type: 'text', text: 'Hi' },
        { type: 'foreign', text: JSON.stringify(item) },
      ],
    },
  ])
})

test('an item between calls does not divide them', () => {
  const call = (call_id: string) => ({ type: 'function_call', call_id, name: 'f', arguments: '{}' })
  const { messages } = read({ input: [hi, call('a'), { type: 'web_search_call' }, call('b')] })
  expect(messages[1]?.parts.map(({ type }) => type)).toEqual(['tool_call', 'foreign', 'tool_call'])
})

test('tools that are no functions, and members that are not read, are kept in the first message', () => {
  const custom = { type: 'custom', name: 'apply_patch', format: { definition: 'start: x' } }
  const prompt = { id: 'pmpt_1', variables: { city: 'Bern' } }
  const quiet = { store: false, metadata: { a: 'b' }, include: ['x'], service_tier: 'auto' }
  const tools = [custom, { type: 'function', name: 'f' }]
  expect(foreignOf({ input: 'Hi', tools, prompt, ...quiet })).toEqual([custom, { prompt }])
  const format = { type: 'json_schema', name: 'n', schema: {}, description: 'Say it so.' }
  expect(foreignOf({ input: 'Hi', text: { format, verbosity: 'low' } })).toEqual([
    { description: 'Say it so.' },
  ])
})

test('what a part or an item says beyond what is read is kept', () => {
  const annotations = [{ type: 'url_citation', title: 'Gold' }]
  const said = { type: 'output_text', text: 'Hi', annotations, logprobs: [{ token: 'Hi' }] }
  expect(foreignOf({ input: [{ role: 'assistant', content: [said] }] })).toEqual([{ annotations }])
  const content = [{ type: 'reasoning_text', text: 'raw' }]
  const reasoning = { type: 'reasoning', summary: [{ type: 'summary_text', text: 's' }], content }
  expect(foreignOf({ input: [reasoning] })).toEqual([{ content }])
})
