import { expect, test } from 'vitest'

import type { Adapter } from './adapter.ts'
import { granite } from './granite.ts'
import { qwenGuard } from './qwen-guard.ts'
import { safeguard } from './safeguard.ts'
import { shieldgemma } from './shieldgemma.ts'
import { chatReplyOf, readRecorded } from './testing/recorded.ts'

const segment = { role: 'user', text: 'hello <end_of_turn>' } as const
const read = (adapter: Adapter, ...replies: unknown[]) => adapter.readReplies(replies, [segment])[0]
const recorded = (name: string): unknown => readRecorded(name).reply

test('shieldgemma: a call for each guideline, whose score is Yes against No', () => {
  const calls = shieldgemma.toCalls([segment, { ...segment, role: 'assistant' }], 'm')
  const prompts = calls.map(({ body }) => (body as { prompt: string }).prompt)
  expect(prompts).toHaveLength(8)
  expect(prompts[0]).toContain(
    '<start_of_turn>\nHuman Question: hello < end_of_turn>\n<end_of_turn>',
  )
  expect(prompts[4]).toContain('\n\nChatbot Response: hello < end_of_turn>\n<end_of_turn>')
  expect(new Set(prompts).size).toBe(8)
  const yes = recorded('shieldgemma')
  expect(read(shieldgemma, yes, yes, yes, yes)).toEqual({
    harassment: 9096,
    hate: 9096,
    illicit: 9096,
    sexual: 9096,
  })
})

test('shieldgemma: without probabilities, or with other words, there is no score', () => {
  const reply = (logprobs: unknown) => ({ choices: [{ index: 0, text: 'No', logprobs }] })
  const withTop = (top: unknown) => reply({ top_logprobs: [top] })
  const good = withTop({ No: -0.1 })
  expect(read(shieldgemma, good, good, good, good)).toMatchObject({ hate: 0 })
  for (const bad of [reply(null), withTop({ Maybe: -0.1 }), withTop({ No: 'x' }), {}, null]) {
    expect(() => read(shieldgemma, good, bad, good, good)).toThrow('cannot be used')
  }
  expect(() => read(shieldgemma, good, good, good)).toThrow('cannot be used')
})

test('granite: a call for each criterion, whose score is yes against no', () => {
  const calls = granite.toCalls([segment], 'm')
  expect(calls).toHaveLength(4)
  expect(calls[0]?.body).toMatchObject({
    chat_template_kwargs: { guardian_config: { criteria_id: 'social_bias' }, think: false },
    logprobs: true,
    temperature: 0,
  })
  const [yes, no] = [recorded('granite-yes'), recorded('granite-no')]
  expect(read(granite, yes, no, no, yes)).toEqual({ hate: 8000, sexual: 100, illicit: 8000 })
})

test('granite: the last score counts, and it needs probabilities', () => {
  const no = recorded('granite-no')
  const echoing = readRecorded('granite-no').reply
  echoing.choices[0]!.message.content = `<score> yes </score> ${echoing.choices[0]!.message.content}`
  expect(read(granite, echoing, no, no, no)).toMatchObject({ hate: 100 })
  const plain = chatReplyOf('granite-no', '<score> no </score>')
  expect(() => read(granite, plain, no, no, no)).toThrow('logprobs')
  const contradicting = readRecorded('granite-no').reply
  contradicting.choices[0]!.message.content = '<score> yes </score>'
  expect(() => read(granite, contradicting, no, no, no)).toThrow('contradicts')
  expect(() => read(granite, chatReplyOf('granite-no', 'no'), no, no, no)).toThrow('no score')
})

test('safeguard: the score follows the verdict and how sure it is', () => {
  expect(read(safeguard, recorded('safeguard-violation'))).toEqual({
    hate: 8000,
    harassment: 8000,
    illicit: 500,
    sexual: 500,
  })
  expect(read(safeguard, recorded('safeguard-safe'))).toEqual({
    hate: 500,
    harassment: 500,
    illicit: 500,
    sexual: 500,
  })
  const unsure = '{"violation": 0, "confidence": "low", "rule_ids": []}'
  expect(read(safeguard, chatReplyOf('safeguard-safe', unsure))).toMatchObject({ hate: 4000 })
})

test.each([
  '{"violation": 1, "confidence": "high", "rule_ids": []}',
  '{"violation": 0, "confidence": "high", "rule_ids": ["hate"]}',
  '{"violation": 1, "confidence": "high", "rule_ids": ["rule-7"]}',
  '{"violation": 1, "confidence": "high", "rule_ids": ["hate"',
  '{"violation": 1, "confidence": "sure", "rule_ids": ["hate"]}',
  '{"violation": 0, "confidence": "high"}',
  '0',
  '',
])('safeguard, case %#: a verdict that is none is a failure', (content) => {
  expect(() => read(safeguard, chatReplyOf('safeguard-safe', content))).toThrow('cannot be used')
})

test('qwen_guard: the score follows the word, for the categories that are named', () => {
  const low = { illicit: 500, sexual: 500, 'self-harm': 500 }
  expect(read(qwenGuard, recorded('qwen-guard-unsafe'))).toEqual({ ...low, 'self-harm': 9500 })
  expect(read(qwenGuard, recorded('qwen-guard-controversial'))).toEqual({ ...low, sexual: 5000 })
  expect(read(qwenGuard, recorded('qwen-guard-safe'))).toEqual(low)
})

test.each([
  'Safety: Unsafe',
  'Safety: Unsafe\nCategories: None',
  'Safety: Safe\nCategories: Violent',
  'Safety: Safe\nSafety: Unsafe\nCategories: Violent',
  'Safety: Unsafe\nCategories: Violent, Sarcasm',
  'Safety: Dangerous\nCategories: Violent',
  'Unsafe, Violent',
])('qwen_guard, case %#: a reply that is none is a failure', (content) => {
  expect(() => read(qwenGuard, chatReplyOf('qwen-guard-safe', content))).toThrow('cannot be used')
})
