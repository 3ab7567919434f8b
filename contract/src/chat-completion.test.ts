import { expect, test } from 'vitest'

import { CreateChatCompletion, createChatCompletion } from './chat-completion.ts'

const least = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }

test('unknown members are kept, at every level', () => {
  const request = {
    ...least,
    messages: [{ role: 'user', content: [{ type: 'new', odd: 1 }], odd: 2 }],
    tools: [{ type: 'new', odd: 3 }],
    stream_options: { odd: 4 },
    odd: { nested: [5] },
  }
  expect(CreateChatCompletion.parse(request)).toEqual(request)
})

test('optional members may be null', () => {
  const optional = Object.keys(CreateChatCompletion.shape).filter((name) => !(name in least))
  const nulls = Object.fromEntries(optional.map((name) => [name, null]))
  expect(CreateChatCompletion.safeParse({ ...least, ...nulls }).success).toBe(true)
})

test.each([
  [{ model: '' }, ['model']],
  [{ model: undefined }, ['model']],
  [{ messages: [] }, ['messages']],
  [{ messages: [{ role: 'robot', content: 'x' }] }, ['messages', 0, 'role']],
  [{ messages: [{ role: 'user', content: 7 }] }, ['messages', 0, 'content']],
  [{ messages: [{ role: 'user', tool_calls: [{}] }] }, ['messages', 0, 'tool_calls', 0, 'id']],
  [{ temperature: 2.1 }, ['temperature']],
  [{ top_p: -0.1 }, ['top_p']],
  [{ n: 0 }, ['n']],
  [{ max_tokens: 0 }, ['max_tokens']],
  [{ max_completion_tokens: 1.5 }, ['max_completion_tokens']],
  [{ stop: ['a', 'b', 'c', 'd', 'e'] }, ['stop']],
  [{ presence_penalty: 3 }, ['presence_penalty']],
  [{ frequency_penalty: -3 }, ['frequency_penalty']],
  [{ tools: [{ type: 'function', function: { name: '' } }] }, ['tools', 0, 'function', 'name']],
  [{ response_format: { type: 'xml' } }, ['response_format', 'type']],
  [{ reasoning_effort: 'huge' }, ['reasoning_effort']],
  [{ stream: 'yes' }, ['stream']],
  [{ flagged_categories: ['hate', 'rain'] }, ['flagged_categories', 1]],
])('%j: the refusal names the path', (more, path) => {
  const { error } = CreateChatCompletion.safeParse({ ...least, ...more })
  expect(error?.issues[0]?.path).toEqual(path)
})

test('the endpoint needs the permission to call models and uses the error dialect of its path', () => {
  expect(createChatCompletion).toMatchObject({
    method: 'POST',
    path: '/v1/chat/completions',
    dialect: 'openai',
    permission: 'model.invoke',
    isIdempotent: false,
  })
  expect(createChatCompletion.errors).toContain('upstream_error')
})
