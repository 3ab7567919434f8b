import { describe, expect, test } from 'vitest'

import type { Json } from '#formats/answer.ts'
import { finish } from '#platform/steps/steps.ts'

import { CallRedaction } from './call-redaction.ts'

// Texts that only the roles of a turn bring side by side. See also divided-texts.scenario.test.ts.

const [head, tail] = ['Write to alice.smith@exam', 'ple.com please']
const [redactedHead, redactedTail] = ['Write to [EMAIL_1]', ' please']

function redact(request: Json): Json {
  return finish(new CallRedaction().redactRequest(request)) ?? request
}

/** A request with a value that is divided over two texts, and the same without it. */
type Write = (head: string, tail: string) => Json

const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: unknown, more: Json = {}) => ({ role: 'assistant', content, ...more })
const text = (said: string) => ({ type: 'text', text: said })
const result = { type: 'function_call_output', call_id: 'c1', output: 'Done.' }
const called = [{ id: 'c1', type: 'function', function: { name: 'read', arguments: '{}' } }]

const joined: Record<string, Write> = {
  'Chat: later system instructions are messages of the user': (one, two) => ({
    messages: [user(one), { role: 'system', content: two }],
  }),
  'Chat: later developer instructions are messages of the user': (one, two) => ({
    messages: [user('Hi.'), assistant('Yes?'), { role: 'developer', content: one }, user(two)],
  }),
  'Chat: instructions at the beginning': (one, two) => ({
    messages: [{ role: 'system', content: one }, { role: 'developer', content: two }, user('Hi.')],
  }),
  'Messages: the system prompt and instructions at the beginning': (one, two) => ({
    system: [text('Be brief.'), text(one)],
    messages: [{ role: 'system', content: two }, user('Hi.')],
  }),
  'Messages: instructions in a row between messages': (one, two) => ({
    messages: [
      user('Hi.'),
      assistant('Yes?'),
      { role: 'system', content: [text(one)] },
      { role: 'system', content: two },
      user('Go on.'),
    ],
  }),
  'Chat: instructions behind an empty message': (one, two) => ({
    messages: [
      { role: 'system', content: 'Be brief.' },
      user(''),
      { role: 'system', content: one },
      user(two),
    ],
  }),
  'Chat: the result of a tool between texts of the user': (one, two) => ({
    messages: [user(one), { role: 'tool', tool_call_id: 'c1', content: 'Done.' }, user(two)],
  }),
  'Chat: the result of a function between texts of the user': (one, two) => ({
    messages: [user(one), { role: 'function', name: 'read', content: 'Done.' }, user(two)],
  }),
  'Chat: a refusal behind a text of the user': (one, two) => ({
    messages: [user([text(one), { type: 'refusal', refusal: two }])],
  }),
  'Chat: a text behind a refusal of the user': (one, two) => ({
    messages: [user([{ type: 'refusal', refusal: one }, text(two)])],
  }),
  'Chat: the refusal of an answer behind its text': (one, two) => ({
    messages: [assistant(one, { refusal: two })],
  }),
  'Chat: an answer that is only reasoning': (one, two) => ({
    messages: [user(one), assistant(null, { reasoning_content: 'Hm.' }), user(two)],
  }),
  'Messages: an answer that is only thinking': (one, two) => ({
    messages: [user(one), assistant([{ type: 'thinking', thinking: 'Hm.' }]), user([text(two)])],
  }),
  'Messages: an empty message of the user': (one, two) => ({
    messages: [assistant([text(one)]), user([text('')]), assistant(two)],
  }),
  'Responses: an empty answer': (one, two) => ({
    input: [user(one), assistant([{ type: 'output_text', text: '' }]), user(two)],
  }),
  'Responses: reasoning between texts of the user': (one, two) => ({
    input: [user(one), { type: 'reasoning', summary: [text('Hm.')] }, user(two)],
  }),
  'Responses: an item that other formats do not have': (one, two) => ({
    input: [user(one), { type: 'web_search_call', id: 'w1' }, user(two)],
  }),
  'Responses: instructions and the first developer item': (one, two) => ({
    instructions: one,
    input: [{ role: 'developer', content: two }, user('Hi.')],
  }),
  'Responses: instructions and a system item behind an item without parts': (one, two) => ({
    instructions: one,
    input: [assistant([]), { type: 'message', role: 'system', content: two }, user('Hi.')],
  }),
  'Responses: later instructions are messages of the user': (one, two) => ({
    input: [user(one), { role: 'developer', content: two }],
  }),
  'Responses: results between texts of the user': (one, two) => ({
    input: [user(one), result, { ...result, type: 'custom_tool_call_output' }, user(two)],
  }),
  'Chat: a member that only items of Responses have': (one, two) => ({
    messages: [user(one), { ...user(two), type: 'reasoning' }],
  }),
  'a list of the other format besides': (one, two) => ({
    messages: [user(one), { role: 'system', content: two }],
    input: [],
  }),
}

test.each(Object.entries(joined))('%s', (_, write) => {
  expect(redact(write(head, tail))).toEqual(write(redactedHead, redactedTail))
})

const silent = ['', null, [], [text('')]].map((content) => ({ content }))
test.each(silent)('Chat: a message that says $content divides nothing', ({ content }) => {
  const write: Write = (one, two) => ({ messages: [user(one), assistant(content), user(two)] })
  expect(redact(write(head, tail))).toEqual(write(redactedHead, redactedTail))
})

describe('texts that no upstream gets side by side', () => {
  const divided: Record<string, Write> = {
    'instructions at the beginning, and the user': (one, two) => ({
      messages: [{ role: 'system', content: one }, user(two)],
    }),
    'a text of the user, and the result of a tool': (one, two) => ({
      messages: [user(one), { role: 'tool', tool_call_id: 'c1', content: two }],
    }),
    'texts of the user around a call': (one, two) => ({
      messages: [user(one), assistant(null, { tool_calls: called }), user(two)],
    }),
    'answers around a result': (one, two) => ({
      input: [assistant(one), result, assistant(two)],
    }),
    'items around a call': (one, two) => ({
      input: [
        user(one),
        { type: 'function_call', call_id: 'c1', name: 'read', arguments: '{}' },
        user(two),
      ],
    }),
  }

  test.each(Object.entries(divided))('%s', (_, write) => {
    expect(redact(write(head, tail))).toEqual(write(head, tail))
  })
})

test('the result of a tool is redacted by itself', () => {
  const messages = [
    user('Hi.'),
    { role: 'tool', tool_call_id: 'c1', content: [text(head), text(tail)] },
    user('Go.'),
  ]
  expect(JSON.stringify(redact({ messages }))).toContain(redactedHead)
})

test('a request may have more values than a function takes arguments', () => {
  const redaction = new CallRedaction({ restores: true })
  const values = Array.from({ length: 150_000 }, (_, number) => `u${number}@a.com`)
  finish(redaction.redactRequest({ messages: [user(values.join(' '))] }))
  expect(redaction.hold).toBeGreaterThan('[EMAIL_150000]'.length)
}, 60_000)
