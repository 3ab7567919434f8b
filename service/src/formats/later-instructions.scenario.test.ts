import { expect, test } from 'vitest'

import { chatUpstreamFormat } from './chat-completions/chat-completion-format.ts'
import { messageCallerFormat, messageUpstreamFormat } from './messages/message-format.ts'
import { responseUpstreamFormat } from './responses/response-format.ts'

const upstream = {
  model: 'up',
  maxOutputTokens: 1000,
  outputLimitMember: 'max_completion_tokens',
} as const
const text = (value: string) => ({ type: 'text', text: value })

const messages = [
  { role: 'system', content: 'Be kind.' },
  { role: 'user', content: 'a' },
  { role: 'system', content: [text('Be brief.'), text('Be clear.')] },
  { role: 'assistant', content: 'b' },
  { role: 'user', content: 'c' },
]
const turn = messageCallerFormat.readTurn({ model: 'm', messages })

test('instructions between messages reach upstreams of Messages as they are', () => {
  const { forwardRequest, writeRequest } = messageUpstreamFormat
  expect(forwardRequest({ messages }, upstream)['messages']).toBe(messages)
  expect(writeRequest(turn, upstream)).toMatchObject({
    system: [text('Be kind.')],
    messages: [
      { role: 'user' },
      { role: 'system', content: [text('Be brief.'), text('Be clear.')] },
      { role: 'assistant' },
      { role: 'user' },
    ],
  })
})

test('they are a system message in their place for Chat Completions', () => {
  const { writeRequest } = chatUpstreamFormat
  expect(writeRequest(turn, upstream)['messages']).toEqual([
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'a' },
    { role: 'system', content: 'Be brief.\n\nBe clear.' },
    { role: 'assistant', content: 'b' },
    { role: 'user', content: 'c' },
  ])
})

test('they are a developer message in their place for Responses', () => {
  const { writeRequest } = responseUpstreamFormat
  const [brief, clear] = ['Be brief.', 'Be clear.'].map((said) => ({
    type: 'input_text',
    text: said,
  }))
  expect(writeRequest(turn, upstream)).toMatchObject({
    instructions: 'Be kind.',
    input: [
      { role: 'user' },
      { role: 'developer', content: [brief, clear] },
      { role: 'assistant' },
      { role: 'user' },
    ],
  })
})
