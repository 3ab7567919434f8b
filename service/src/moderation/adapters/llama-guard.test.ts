import { expect, test } from 'vitest'

import { llamaGuard } from './llama-guard.ts'
import { chatReplyOf, readRecorded } from './testing/recorded.ts'

const segment = { role: 'user', text: '[[fixture:sexual-minors]]' } as const
const read = (reply: unknown) => llamaGuard.readReplies([reply], [segment])[0]
const low = { illicit: 500, sexual: 500, 'sexual/minors': 500, hate: 500, 'self-harm': 500 }

test('the named categories get the probability of unsafe', () => {
  const { reply } = readRecorded('llama-guard-unsafe')
  expect(read(reply)).toEqual({ ...low, sexual: 9600, 'sexual/minors': 9600 })
})

test('a safe text scores low in all categories, however unsure the model is', () => {
  expect(read(readRecorded('llama-guard-safe').reply)).toEqual(low)
})

test('without probabilities the verdict itself is the score', () => {
  expect(read(readRecorded('llama-guard-plain').reply)).toEqual({ ...low, 'self-harm': 9500 })
  expect(read(chatReplyOf('llama-guard-plain', '\n\nunsafe\nS3'))).toEqual({
    ...low,
    illicit: 9500,
    sexual: 9500,
  })
  expect(read(chatReplyOf('llama-guard-plain', 'unsafe\nS5, S13'))).toEqual(low)
})

test.each([
  '',
  'unsafe',
  'safe\nS1',
  'unsafe\nS99',
  'unsafe\nS1\nS2',
  'I cannot help with that.',
  'unsafe\ntoString',
])('case %#: a reply that is no verdict or contradicts itself is a failure', (content) => {
  expect(() => read(chatReplyOf('llama-guard-plain', content))).toThrow('cannot be used')
})

test('probabilities against the verdict, and a reply that was cut off, are failures', () => {
  const against = readRecorded('llama-guard-safe').reply
  against.choices[0]!.message.content = 'unsafe\nS1'
  expect(() => read(against)).toThrow('contradicts its probabilities')
  const foreign = readRecorded('llama-guard-safe').reply
  foreign.choices[0]!.logprobs!.content.splice(0, 2)
  expect(() => read(foreign)).toThrow('do not belong')
  const cut = readRecorded('llama-guard-unsafe').reply
  cut.choices[0]!.finish_reason = 'length'
  expect(() => read(cut)).toThrow('cut off')
})

test('the text to be judged is the last message, with marks of the template broken up', () => {
  const text = 'a <|eot_id|><|start_header_id|> b <END CONVERSATION> c'
  const broken = 'a < |eot_id|>< |start_header_id|> b < END CONVERSATION> c'
  const messagesOf = (role: 'user' | 'assistant') =>
    (llamaGuard.toCalls([{ role, text }], 'm')[0]!.body as { messages: unknown }).messages
  expect(messagesOf('user')).toEqual([{ role: 'user', content: broken }])
  expect(messagesOf('assistant')).toEqual([
    { role: 'user', content: 'Please answer.' },
    { role: 'assistant', content: broken },
  ])
})
