import { describe, expect, test } from 'vitest'

import { putInForce } from './support/policies/enforcing.ts'
import { applyConfig } from './support/policies/gateway-config.ts'
import type { Format } from './support/streams/call.ts'
import { expectOfAll, type NamedRequest, send, ways } from './support/streams/outcomes.ts'
import { bodyThatSays, modelOf, type Said } from './support/streams/said.ts'
import { useStack } from './support/use-stack.ts'

// Callers write the earlier messages of the assistant too, so each of them gets the verdict that it would get as an answer.

const stack = useStack({ paidUsd: '5000' })

const user = (content: string): Said => ({ role: 'user', content })
const assistant = (content: string | readonly string[]): Said => ({ role: 'assistant', content })

/** Where in a conversation the text stands as something that the assistant said. */
const places: Record<string, (text: string) => readonly Said[]> = {
  'the last answer': (text) => [user('Hi.'), assistant(text), user('Do what you said.')],
  'an answer before others': (text) => [
    user('Hi.'),
    assistant(text),
    user('Yes?'),
    assistant('Well, yes.'),
    user('Do what you said at first.'),
  ],
  'the beginning of a conversation': (text) => [assistant(text), user('Do what you said.')],
}

/** The same as a text that is divided. */
const dividedPlaces: Record<string, (text: readonly string[]) => readonly Said[]> = {
  parts: (parts) => [user('Hi.'), assistant(parts), user('Do what you said.')],
  'messages in a row': (parts) => [user('Hi.'), ...parts.map(assistant), user('Go on.')],
}

const requestsOf = (conversations: Record<string, readonly Said[]>): NamedRequest[] =>
  ways.flatMap((way) =>
    Object.entries(conversations).map(([name, said]) => ({
      name: `${way.name}: ${name}`,
      format: way.format,
      body: bodyThatSays({ ...way, said }),
    })),
  )

const mapValues = <T, U>(record: Record<string, T>, map: (value: T) => U) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))

type Outcome = 'refused' | 'served'

const expectSaid = (text: string, expected: Outcome) =>
  expectOfAll(stack(), requestsOf(mapValues(places, (place) => place(text))), expected)

const expectDivided = (parts: readonly string[], expected: Outcome) =>
  expectOfAll(stack(), requestsOf(mapValues(dividedPlaces, (place) => place(parts))), expected)

const marks = ['[[cat:self-harm=0.99]]', '[[cat:sexual/minors=0.99]]']
const fruit = 'cel: text.contains("kumquat marmalade")'

describe('an earlier answer', () => {
  test.each(marks)('what is always blocked: %s', async (mark) => {
    await expectSaid(`Well, ${mark} so.`, 'refused')
  })

  test('what is always blocked, divided, and what is not', async () => {
    await expectDivided(['Well, [[cat:self-', 'harm=0.99]] so.'], 'refused')
    await expectSaid('Well, [[cat:self-harm=0.3]] [[cat:hate=0.99]] so.', 'served')
  })

  test.each(['response', 'both'] as const)(
    'an exact rule of the direction %s',
    async (direction) => {
      await putInForce(stack(), { rule: fruit, direction })
      await expectSaid('I like kumquat marmalade.', 'refused')
      await expectDivided(['I like kumquat', 'marmalade.'], 'refused')
      await expectDivided(['I like kum', 'quat marmalade.'], 'refused')
      await expectSaid('I like kumquats.', 'served')
    },
  )

  test('an exact rule of requests does not apply to what a model said', async () => {
    await putInForce(stack(), { rule: fruit, direction: 'request' })
    await expectSaid('I like kumquat marmalade.', 'served')
  })

  test('an exact rule that monitors lets it pass', async () => {
    await putInForce(stack(), { rule: fruit, direction: 'both', mode: 'monitoring' })
    await expectSaid('I like kumquat marmalade.', 'served')
  })

  test('a rule in plain language', async () => {
    const rule = 'Block texts about fruit.'
    const { id } = await putInForce(stack(), { rule, direction: 'response' })
    await expectSaid(`I like fruit [[rule:${id}=0.9]].`, 'refused')
    await expectSaid(`I like nuts [[rule:${id}=0.2]].`, 'served')
  })

  test('a rule that reads scores', async () => {
    const rule = 'cel: score("hate") > 0.5'
    await putInForce(stack(), { rule, direction: 'response' })
    await expectSaid('I like [[cat:hate=0.9]].', 'refused')
    await expectSaid('I like [[cat:hate=0.2]].', 'served')
  })

  test('the lists and categories of the configuration', async () => {
    const rules = { denylist: ['kumquat'], flagged_categories: ['hate'] }
    await applyConfig(stack(), { rules })
    await expectSaid('I like a kumquat.', 'refused')
    await expectSaid('I like [[cat:hate=0.9]].', 'refused')
    await expectSaid('I like an orange.', 'served')
  })

  test('the error names the message', async () => {
    const said = [
      user('Hi.'),
      assistant('Yes.'),
      user('Hm.'),
      assistant(marks[0] ?? ''),
      user('Go.'),
    ]
    for (const way of ways) {
      const { status, text } = await send(stack(), way.format, bodyThatSays({ ...way, said }))
      const place = way.format === 'responses' ? 'input[3]' : 'messages[3]'
      expect([way.name, status, text]).toEqual([way.name, 400, expect.stringContaining(place)])
    }
  })
})

describe('how much of it the configuration wants', () => {
  test.each([
    ['answer', 'served', 'refused'],
    ['both', 'refused', 'refused'],
    ['skip', 'served', 'served'],
  ] as const)('%s: rules of requests: %s, rules of answers: %s', async (mode, asked, answered) => {
    await applyConfig(stack(), { rules: { assistant_history: mode, denylist: ['persimmon'] } })
    await putInForce(stack(), { rule: fruit, direction: 'request' })
    await putInForce(stack(), { rule: 'cel: text.contains("quince")', direction: 'response' })
    await expectSaid('I like kumquat marmalade.', asked)
    await expectSaid('I like quince.', answered)
    await expectSaid('I like persimmon.', answered)
    // No configuration can switch this off.
    await expectSaid(`Well, ${marks[0]} so.`, 'refused')
  })

  test.each([
    [{ redact: true, redact_restore: true }, 'served'],
    [{ redact: true }, 'refused'],
    [{ redact_restore: true }, 'refused'],
  ] as const)('personal data under %o: %s', async (rules, expected) => {
    await applyConfig(stack(), { rules })
    await putInForce(stack(), { rule: 'cel: pii("EMAIL") > 0', direction: 'response' })
    await expectSaid('Write to jo@example.org.', expected)
  })
})

test('the beginning of an answer is judged with the requests, also where it is divided', async () => {
  await putInForce(stack(), { rule: fruit, direction: 'request' })
  const begun = (...said: string[]) =>
    requestsOf({ [said.join('|')]: [user('Hi.'), ...said.map((text) => assistant(text))] })
  for (const said of [
    ['a kumquat marmalade'],
    ['a kumquat marmalade', ' '],
    ['a kumquat ', 'marmalade'],
  ]) {
    await expectOfAll(stack(), begun(...said), 'refused')
  }
  await expectOfAll(stack(), begun('a kumquat ', 'jam'), 'served')
})

describe('what else the assistant did', () => {
  const tool = { name: 'write', schema: { type: 'object' } }
  const result = 'Done.'
  /** A conversation with a call of a tool, and its result. */
  const withCall: Record<Format, (json: string) => object> = {
    messages: (json) => ({
      max_tokens: 20,
      tools: [{ name: tool.name, input_schema: tool.schema }],
      messages: [
        { role: 'user', content: 'Write it.' },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 't1', name: tool.name, input: JSON.parse(json) as object },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: result }] },
      ],
    }),
    chat: (json) => ({
      tools: [{ type: 'function', function: { name: tool.name, parameters: tool.schema } }],
      messages: [
        { role: 'user', content: 'Write it.' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 't1', type: 'function', function: { name: tool.name, arguments: json } },
          ],
        },
        { role: 'tool', tool_call_id: 't1', content: result },
      ],
    }),
    responses: (json) => ({
      tools: [{ type: 'function', name: tool.name, parameters: tool.schema }],
      input: [
        { role: 'user', content: 'Write it.' },
        { type: 'function_call', call_id: 't1', name: tool.name, arguments: json },
        { type: 'function_call_output', call_id: 't1', output: result },
      ],
    }),
  }
  /** A conversation with reasoning that its reader sees. */
  const withReasoning: Record<Format, (text: string) => object> = {
    messages: (thinking) => ({
      max_tokens: 20,
      messages: [
        { role: 'user', content: 'Hi.' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking, signature: 'c2lnbmVk' },
            { type: 'text', text: 'Hello.' },
          ],
        },
        { role: 'user', content: 'Go on.' },
      ],
    }),
    chat: (reasoning_content) => ({
      messages: [
        { role: 'user', content: 'Hi.' },
        { role: 'assistant', content: 'Hello.', reasoning_content },
        { role: 'user', content: 'Go on.' },
      ],
    }),
    responses: (text) => ({
      input: [
        { role: 'user', content: 'Hi.' },
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text }] },
        { role: 'assistant', content: 'Hello.' },
        { role: 'user', content: 'Go on.' },
      ],
    }),
  }

  const inEveryWay = (write: Record<Format, (text: string) => object>, text: string) =>
    ways.map(({ name, format, isStreamed }) => {
      const common = { model: modelOf[format], stream: isStreamed }
      return { name, format, body: { ...common, ...write[format](text) } }
    })
  const expectCalled = (words: readonly string[], expected: Outcome) =>
    expectOfAll(stack(), inEveryWay(withCall, JSON.stringify({ words })), expected)
  const expectThought = (text: string, expected: Outcome) =>
    expectOfAll(stack(), inEveryWay(withReasoning, text), expected)

  test('arguments of calls', async () => {
    await putInForce(stack(), { rule: fruit, direction: 'response' })
    await expectCalled(['kumquat marmalade'], 'refused')
    await expectCalled(['a kumquat', 'marmalade'], 'refused')
    await expectCalled(['[[cat:self-harm=0.99]]'], 'refused')
    await expectCalled(['[[cat:self-', 'harm=0.99]]'], 'refused')
    await expectCalled(['a kumquat', 'jam'], 'served')
  })

  test('visible reasoning', async () => {
    await putInForce(stack(), { rule: fruit, direction: 'response' })
    await expectThought('I want kumquat marmalade.', 'refused')
    await expectThought('I want [[cat:self-harm=0.99]].', 'refused')
    await expectThought('I want kumquats.', 'served')
  })
})
