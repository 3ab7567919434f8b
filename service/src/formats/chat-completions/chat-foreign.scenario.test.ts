import { expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'

import { chatCallerFormat } from './chat-completion-format.ts'

const hi = { role: 'user', content: 'Hi' }
const read = (request: Json) =>
  chatCallerFormat.readTurn({ model: 'm', messages: [hi], ...request })
const foreignOf = (request: Json) =>
  read(request).messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'foreign' ? [JSON.parse(part.text) as unknown] : [])),
  )
const called = (name: string) => ({ type: 'function', function: { name } })

test('tools that are no functions are kept in the first message; functions of both kinds are tools', () => {
  const custom = { type: 'custom', custom: { name: 'shell', description: 'Runs anything.' } }
  const request = { tools: [called('f'), custom], functions: [{ name: 'old' }] }
  expect(foreignOf(request)).toEqual([custom])
  expect(read(request).tools.map(({ name }) => name)).toEqual(['f', 'old'])
})

test('tools that may not be called are still sent', () => {
  const allowed_tools = { mode: 'auto', tools: [called('f')] }
  const request = {
    tools: [called('f'), called('g')],
    tool_choice: { type: 'allowed_tools', allowed_tools },
  }
  expect(read(request).tools.map(({ name }) => name)).toEqual(['f'])
  expect(foreignOf(request)).toMatchObject([{ name: 'g' }])
})

test('members that are not read are kept where they say something', () => {
  const prediction = { type: 'content', content: 'What it may say.' }
  const quiet = { stream: true, metadata: { a: 'b' }, min_p: 0.1, extra: null, user: 'u' }
  expect(foreignOf({ prediction, ...quiet })).toEqual([{ prediction }])
  expect(foreignOf({ messages: [{ ...hi, name: 'Ann' }] })).toEqual([{ name: 'Ann' }])
  const thought = { role: 'assistant', content: 'a', reasoning_content: 'b', reasoning: 'c' }
  expect(foreignOf({ messages: [hi, thought] })).toEqual([{ reasoning: 'c' }])
  const json_schema = { name: 'n', description: 'Say it so.', schema: {} }
  expect(foreignOf({ response_format: { type: 'json_schema', json_schema } })).toEqual([
    { description: 'Say it so.' },
  ])
  expect(foreignOf({ response_format: { type: 'grammar', grammar: 'root' } })).toEqual([
    { grammar: 'root' },
  ])
})

test('instructions with a name stay instructions', () => {
  const turn = read({ messages: [{ role: 'system', content: 'Be brief.', name: 'Ann' }, hi] })
  expect(turn.system).toEqual(['Be brief.'])
  expect(turn.messages[0]?.parts[1]).toEqual({ type: 'foreign', text: '{"name":"Ann"}' })
})

test('instructions with more than text, and refusals that are not the assistant’s, are read', () => {
  const image = { type: 'image_url', image_url: { url: 'https://a.example/b.png' } }
  const refusal = { type: 'refusal', refusal: 'No.' }
  const turn = read({ messages: [{ role: 'system', content: [image, refusal] }, hi] })
  expect(turn.system).toEqual([])
  expect(turn.messages[0]?.parts).toMatchObject([{ type: 'image' }, { type: 'text', text: 'No.' }])
})
