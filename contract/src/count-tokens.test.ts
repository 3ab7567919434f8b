import { expect, test } from 'vitest'

import { CountTokens, countTokens } from './count-tokens.ts'
import { errorsOf } from './endpoint.ts'

const messages = [{ role: 'user', content: 'Hello.' }]
const accepts = (body: unknown) => CountTokens.safeParse(body).success

test('a model and one message are enough', () => {
  expect(accepts({ model: 'm', messages })).toBe(true)
  expect(accepts({ messages })).toBe(false)
  expect(accepts({ model: 'm' })).toBe(false)
  expect(accepts({ model: '', messages })).toBe(false)
  expect(accepts({ model: 'm', messages: [] })).toBe(false)
})

test('every member of the contract is accepted, and so are other members of a message request', () => {
  const body = {
    model: 'm',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello.' }] }],
    system: [{ type: 'text', text: 'Be brief.' }],
    tools: [{ name: 'look_up', input_schema: { type: 'object' } }],
    tool_choice: { type: 'tool', name: 'look_up', disable_parallel_tool_use: true },
    thinking: { type: 'enabled', budget_tokens: 2048 },
    output_config: { format: { type: 'json_schema', schema: { type: 'object' } } },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    max_tokens: 10,
    stream: true,
    unheard_of: 1,
  }
  expect(CountTokens.parse(body)).toEqual(body)
})

test('type and role may be left out where the meaning is clear', () => {
  const bare = [{ content: 'Hello.' }]
  expect(accepts({ model: 'm', messages: bare })).toBe(true)
  expect(accepts({ model: 'm', messages: [{ role: 'tool', content: 'Hello.' }] })).toBe(false)
  const instructed = [...bare, { role: 'system', content: 'Be brief.' }]
  expect(accepts({ model: 'm', messages: instructed })).toBe(true)
  expect(accepts({ model: 'm', messages: [{ content: '' }] })).toBe(false)
  expect(accepts({ model: 'm', messages, tool_choice: { name: 'look_up' } })).toBe(true)
  expect(accepts({ model: 'm', messages, tool_choice: {} })).toBe(false)
  expect(accepts({ model: 'm', messages, thinking: { budget_tokens: 2048 } })).toBe(true)
  expect(accepts({ model: 'm', messages, thinking: { budget_tokens: null } })).toBe(false)
  expect(accepts({ model: 'm', messages, thinking: {} })).toBe(false)
})

test('the answer is one non-negative number', () => {
  expect(countTokens.response.safeParse({ input_tokens: 0 }).success).toBe(true)
  expect(countTokens.response.safeParse({ input_tokens: -1 }).success).toBe(false)
  expect(countTokens.response.safeParse({ input_tokens: 1.5 }).success).toBe(false)
})

test('an unsupported context edit and too much text are among its errors', () => {
  expect(errorsOf(countTokens)).toEqual(
    expect.arrayContaining(['unsupported_context_edit', 'request_too_large', 'invalid_parameter']),
  )
})
