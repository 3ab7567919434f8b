import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { RawFrame } from './framing.ts'
import { RepeatedFrame } from './repeated-frame.ts'

const frame = (data: string, event = ''): RawFrame => ({ event, data, bytes: Buffer.from(data) })
const delta = (text: string, more: object = {}) =>
  frame(JSON.stringify({ id: 'c', choices: [{ delta: { content: text }, index: 0 }], ...more }))

function learned(from: RawFrame, text: string) {
  const repeated = new RepeatedFrame()
  repeated.learn(from, text)
  return repeated
}

test('the text of a frame that differs in nothing else is found', () => {
  const repeated = learned(delta('Hello'), 'Hello')
  expect([' world', 'ü 世界 😀', ' '].map((text) => repeated.textOf(delta(text)))).toEqual([
    ' world',
    'ü 世界 😀',
    ' ',
  ])
})

test.each([
  ['an escape', delta('a\nb')],
  ['a quote', delta('a"b')],
  ['no text', delta('')],
  ['another member', delta('a', { usage: { total: 1 } })],
  ['another event', { ...delta('a'), event: 'error' }],
  [
    'two strings instead of one',
    frame('{"id":"c","choices":[{"delta":{"content":"a","role":"b"},"index":0}]}'),
  ],
  [
    'an end that overlaps its start',
    frame('{"id":"c","choices":[{"delta":{"content":""},"index":0}]}'),
  ],
])('a frame with %s is not repeated', (_, other) => {
  expect(learned(delta('Hello'), 'Hello').textOf(other)).toBeUndefined()
})

test.each([
  ['whose text stands in it twice', delta('c'), 'c'],
  ['with an escape, behind which the text may stand twice', frame('{"a":"x","b":"\\u0078"}'), 'x'],
  ['that does not contain the text', delta('Hello'), 'Hell'],
  ['without a text', delta(''), ''],
  [
    'whose text looks like the end of one string and the start of the next',
    frame('{"a":",","b":"x"}'),
    ',',
  ],
])('nothing is learned from a frame %s', (_, from, text) => {
  expect(learned(from, text).textOf(from)).toBeUndefined()
})

test('what was learned is forgotten', () => {
  const repeated = learned(delta('Hello'), 'Hello')
  repeated.forget()
  expect(repeated.textOf(delta('Hello'))).toBeUndefined()
})

test('a text that is found is the one that parsing finds, whatever the frames', () => {
  const texts = fc.oneof(fc.string(), fc.constantFrom('c', ',', ':', '","', '{', 'id', 'é', '\\'))
  const members = fc.dictionary(fc.constantFrom('id', 'a', 'b'), texts)
  fc.assert(
    fc.property(texts, texts, members, members, (one, other, before, after) => {
      const make = (text: string) => frame(JSON.stringify({ ...before, delta: { text }, after }))
      const found = learned(make(one), one).textOf(make(other))
      if (found !== undefined) expect(found).toBe(other)
    }),
  )
})
