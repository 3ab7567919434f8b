import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'

import { eventsOf, sumUp, toSource } from './testing/golden-streams.ts'

const created = { type: 'response.created', response: { id: 'resp_1', model: 'm' } }
const completed = (...output: Json[]) => ({
  type: 'response.completed',
  response: { id: 'resp_1', model: 'm', status: 'completed', output },
})
const at = { output_index: 0, content_index: 0, summary_index: 0 }
const added = (item: Json) => ({ type: 'response.output_item.added', ...at, item })
const done = (item: Json) => ({ type: 'response.output_item.done', ...at, item })
const delta = (of: string, text: string) => ({ type: `response.${of}.delta`, ...at, delta: text })

const text = (value: string) => ({ type: 'output_text', text: value })
const message = (...content: Json[]) => ({ id: 'i', type: 'message', role: 'assistant', content })
const refusal = (value: string) => message({ type: 'refusal', refusal: value })
const called = { id: 'i', type: 'function_call', call_id: 'c', name: 'f' }
const call = (args: string) => ({ ...called, arguments: args })
const custom = (input: string) => ({ ...called, type: 'custom_tool_call', input })
const reasoning = (...texts: string[]) => ({
  id: 'i',
  type: 'reasoning',
  summary: texts.map((value) => ({ type: 'summary_text', text: value })),
})

const kinds: [string, string, (value: string) => Json][] = [
  ['text', 'output_text', (value) => message(text(value))],
  ['a refusal', 'refusal', refusal],
  ['arguments', 'function_call_arguments', call],
  ['input', 'custom_tool_call_input', custom],
  ['reasoning', 'reasoning_summary_text', reasoning],
]

const read = (...frames: Json[]) => sumUp(eventsOf(toSource(created, ...frames)))
const textsOf = (...frames: Json[]) => read(...frames).blocks.map((block) => block.text)

test.each(kinds)('%s may be told again, trimmed, or left out', (_, of, item) => {
  const start = [added(item('')), delta(of, 'said ')]
  const once = textsOf(...start, completed())
  for (const again of ['said ', 'said', ' said \n', '']) {
    expect(textsOf(...start, done(item(again)), completed(item(again)))).toEqual(once)
  }
  const { content: _content, ...bare } = { content: null, ...item('said ') } as Json
  expect(textsOf(...start, done(item('said ')), completed(bare))).toEqual(once)
})

test.each(kinds)('%s that is told otherwise at the end is a broken answer', (_, of, item) => {
  const start = [added(item('')), delta(of, 'said')]
  for (const other of ['else', 'said and more']) {
    expect(() => read(...start, done(item('said')), completed(item(other)))).toThrow(BrokenAnswer)
    expect(() => read(...start, done(item('said')), done(item(other)), completed())).toThrow(
      BrokenAnswer,
    )
  }
  expect(() => read(...start, done(item('else')), completed())).toThrow(BrokenAnswer)
})

test('a call that is told with another name, or an item with another kind, is a broken answer', () => {
  const start = [added(call('')), delta('function_call_arguments', '{}')]
  const other = { ...call('{}'), name: 'g' }
  expect(() => read(...start, done(other), completed())).toThrow(BrokenAnswer)
  expect(() => read(...start, done(call('{}')), completed(other))).toThrow(BrokenAnswer)
  expect(() => read(...start, done(call('{}')), completed(custom('{}')))).toThrow(BrokenAnswer)
})

test('what only the end tells is read: items, and parts of items', () => {
  const start = [added(message()), delta('output_text', 'a'), done(message(text('a')))]
  const late = { ...message(text('c')), id: 'j' }
  expect(textsOf(...start, completed(message(text('a'), text('b')), late))).toEqual(['a', 'b', 'c'])
  expect(textsOf(added(reasoning()), done(reasoning()), completed(reasoning('late')))).toEqual([
    'late',
  ])
})
