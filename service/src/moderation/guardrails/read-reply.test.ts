import { expect, test } from 'vitest'

import { GuardrailFailure } from './guardrail-failure.ts'
import { readReply } from './read-reply.ts'

const read = (reply: unknown, texts = ['hello world', 'second 😀 text']) =>
  readReply(JSON.stringify(reply), texts)

const span = { index: 0, start: 0, end: 5, replacement: 'bye' }

test('reads each action', () => {
  expect(read({ action: 'allow' })).toEqual({ kind: 'allow', code: null })
  expect(read({ action: 'allow', code: 'seen', spans: [] })).toEqual({
    kind: 'allow',
    code: 'seen',
  })
  expect(read({ action: 'block', code: 'pii', reason: 'No names.' })).toEqual({
    kind: 'block',
    code: 'pii',
    reason: 'No names.',
  })
  expect(read({ action: 'block', code: null, reason: '' })).toEqual({
    kind: 'block',
    code: null,
    reason: null,
  })
})

test('a rewrite has the edits of each text in their order, with offsets of UTF-16', () => {
  const reply = read({
    action: 'rewrite',
    spans: [{ index: 1, start: 9, end: 13, replacement: '' }, span, { ...span, index: 1 }],
  })
  expect(reply).toEqual({
    kind: 'rewrite',
    code: null,
    edits: [
      [{ start: 0, end: 5, replacement: 'bye' }],
      [
        { start: 0, end: 5, replacement: 'bye' },
        { start: 10, end: 14, replacement: '' },
      ],
    ],
  })
})

test('members that are not known are left out', () => {
  expect(read({ action: 'allow', latency: 3, detail: { model: 'm' } })).toMatchObject({
    kind: 'allow',
  })
})

const rewriteOf = (member: object) => ({ action: 'rewrite', spans: [{ ...span, ...member }] })

test.each([
  ['no object', 'allow', 'it must be'],
  ['a list', [{ action: 'allow' }], 'it must be'],
  ['nothing', null, 'it must be'],
  ['no action', {}, "'action' is required"],
  ['another action', { action: 'ALLOW' }, "'action' must be"],
  ['a code with a text', { action: 'block', code: 'the secret word' }, "'code' must be"],
  ['a code that is too long', { action: 'block', code: 'x'.repeat(65) }, "'code' must be"],
  ['a reason that is too long', { action: 'block', reason: 'x'.repeat(1001) }, "'reason' must"],
  ['no spans to rewrite', { action: 'rewrite' }, "'spans' is required"],
  ['empty spans to rewrite', { action: 'rewrite', spans: [] }, "'spans' is required"],
  ['spans without a rewrite', { action: 'allow', spans: [span] }, "'spans' has no meaning"],
  ['too many spans', { action: 'rewrite', spans: Array(1001).fill(span) }, "'spans' must"],
  ['a text that was not sent', rewriteOf({ index: 2 }), 'was not sent'],
  ['an offset that is no number', rewriteOf({ start: '0' }), "'spans[0].start' must"],
  ['a fraction', rewriteOf({ end: 1.5 }), "'spans[0].end' must"],
  ['a negative offset', rewriteOf({ start: -1 }), "'spans[0].start' must"],
  ['no replacement', rewriteOf({ replacement: undefined }), "'spans[0].replacement' is required"],
  ['a replacement that is too long', rewriteOf({ replacement: 'x'.repeat(10_001) }), 'replacement'],
  ['half a character', rewriteOf({ replacement: '\ud83d' }), 'well-formed'],
  ['an empty span', rewriteOf({ start: 5 }), 'is empty'],
  ['a span outside the text', rewriteOf({ end: 12 }), 'outside the text'],
  ['overlapping spans', { action: 'rewrite', spans: [span, { ...span, start: 4 }] }, 'overlaps'],
])('%s breaks the contract, and the failure says how', (_, reply, problem) => {
  const reading = () => read(reply)
  expect(reading).toThrow(GuardrailFailure)
  expect(reading).toThrow(problem)
  expect(reading).toThrow(expect.objectContaining({ problem: 'malformed', isMisconfigured: false }))
})

test('what is no JSON breaks the contract', () => {
  for (const body of ['', 'ok', '{"action":"allow"', '<html>'])
    expect(() => readReply(body, [])).toThrow('it is not JSON')
})

test('the failure repeats nothing of the answer', () => {
  const secret = 'a-secret-of-the-answer'
  for (const reply of [
    { action: secret },
    { action: 'block', code: `${secret} ` },
    { action: 'block', reason: secret.repeat(100) },
    rewriteOf({ replacement: secret.repeat(1000) }),
    { [secret]: 1 },
  ]) {
    expect(() => read(reply)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining(secret) }),
    )
  }
})
