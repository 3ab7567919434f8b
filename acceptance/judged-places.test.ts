import { describe, test } from 'vitest'

import { putInForce } from './support/policies/enforcing.ts'
import { applyConfig } from './support/policies/gateway-config.ts'
import { type Format, hiddenPromptFor } from './support/streams/call.ts'
import {
  expectAnswerRefused,
  expectOfAll,
  expectServed,
  type NamedRequest,
  send,
  type Way,
  ways,
} from './support/streams/outcomes.ts'
import { bodyThatSays, modelOf, type Said } from './support/streams/said.ts'
import { useStack } from './support/use-stack.ts'

// Rules, lists and scorers read whatever the model or the caller reads: JSON as what it means, instructions like messages, and
// files that are text.

const stack = useStack({ paidUsd: '5000' })

const expectAll = (requests: readonly NamedRequest[], expected: 'refused' | 'served') =>
  expectOfAll(stack(), requests, expected)

/** A request in each way; what is said may depend on its format. */
const inEveryWay = (name: string, bodyOf: (way: Way) => object): NamedRequest[] =>
  ways.map((way) => ({ name: `${way.name}: ${name}`, format: way.format, body: bodyOf(way) }))

const saying = (...said: Said[]) =>
  inEveryWay(JSON.stringify(said), (way) => bodyThatSays({ ...way, said }))

/** Every letter outside of ASCII as an escape, as many programs write JSON. */
const toAscii = (value: unknown) =>
  JSON.stringify(value).replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

describe('JSON is judged as what it means', () => {
  const jsonAnswer = {
    messages: {},
    chat: { response_format: { type: 'json_object' } },
    responses: { text: { format: { type: 'json_object' } } },
  } satisfies Record<Format, object>

  async function answerIn(way: Way, text: string) {
    const said: Said[] = [{ role: 'user', content: `JSON. ${hiddenPromptFor({ text })}` }]
    const body = { ...bodyThatSays({ ...way, said }), ...jsonAnswer[way.format] }
    return send(stack(), way.format, body)
  }

  test.each([
    ['cel: text.contains("Projet Éclair")', 'Projet Éclair'],
    ['cel: text.contains("Projet Éclair")', 'Projet\nÉclair'],
    [String.raw`cel: text.matches("(?i)\\bproject falcon\\b")`, 'About: Project Falcon'],
    [String.raw`cel: text.matches("(?i)\\bproject falcon\\b")`, 'About:\nProject Falcon'],
  ])('answers: %s, %j', async (rule, value) => {
    await putInForce(stack(), { rule, direction: 'response' })
    for (const way of ways) {
      for (const json of [JSON.stringify({ t: value }), toAscii({ t: value })]) {
        expectAnswerRefused(await answerIn(way, json), way)
      }
      expectServed(await answerIn(way, toAscii({ t: 'Le projet' })), way)
    }
  })

  test('requests', async () => {
    const rule = String.raw`cel: text.matches("(?i)\\bproject (falcon|éclair)\\b")`
    await putInForce(stack(), { rule, direction: 'request' })
    for (const value of ['About: Project Falcon', 'About:\nProject Falcon', 'The Project Éclair']) {
      const content = `Summarise ${toAscii({ t: value })}`
      await expectAll(saying({ role: 'user', content }), 'refused')
    }
    const harmless = `Summarise ${toAscii({ t: 'About:\nÉclair, the project' })}`
    await expectAll(saying({ role: 'user', content: harmless }), 'served')
  })

  const call = { name: 'read', schema: { type: 'object' } }
  /** A request with the result of a tool. */
  const withResult = {
    messages: (content: string) => ({
      max_tokens: 20,
      tools: [{ name: call.name, input_schema: call.schema }],
      messages: [
        { role: 'user', content: 'Read it.' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 't1', name: call.name, input: {} }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content }] },
      ],
    }),
    chat: (content: string) => ({
      tools: [{ type: 'function', function: { name: call.name, parameters: call.schema } }],
      messages: [
        { role: 'user', content: 'Read it.' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 't1', type: 'function', function: { name: call.name, arguments: '{}' } },
          ],
        },
        { role: 'tool', tool_call_id: 't1', content },
      ],
    }),
    responses: (output: string) => ({
      tools: [{ type: 'function', name: call.name, parameters: call.schema }],
      input: [
        { role: 'user', content: 'Read it.' },
        { type: 'function_call', call_id: 't1', name: call.name, arguments: '{}' },
        { type: 'function_call_output', call_id: 't1', output },
      ],
    }),
  } satisfies Record<Format, (result: string) => object>
  const resulting = (result: string) =>
    inEveryWay(result, ({ format, isStreamed }) => ({
      model: modelOf[format],
      stream: isStreamed,
      ...withResult[format](result),
    }))

  test('results of tools', async () => {
    await applyConfig(stack(), { rules: { denylist: ['Проект Сокол'] } })
    await expectAll(resulting(JSON.stringify({ t: 'Проект Сокол' })), 'refused')
    await expectAll(resulting(toAscii({ t: 'Проект Сокол' })), 'refused')
    await expectAll(resulting(JSON.stringify(toAscii({ t: 'Проект Сокол' }))), 'refused')
    await expectAll(resulting(toAscii({ t: 'Проект Чайка' })), 'served')
  })
})

describe('instructions are judged like messages', () => {
  const forbidden = 'kumquat AKIAIOSFODNN7EXAMPLE 4111 1111 1111 1111'

  const instructed = (content: string): NamedRequest[] => [
    ...saying({ role: 'system', content }, { role: 'user', content: 'Hi.' }),
    ...inEveryWay(`as a developer, ${content}`, ({ format, isStreamed }) => {
      const messages = [
        { role: 'developer', content },
        { role: 'user', content: 'Hi.' },
      ]
      const common = { model: modelOf[format], stream: isStreamed }
      if (format === 'chat') return { ...common, messages }
      if (format === 'responses') return { ...common, instructions: content, input: 'Hi.' }
      return { ...common, max_tokens: 20, system: content, messages: messages.slice(1) }
    }),
    ...amongMessages(content),
  ]

  /** Messages with instructions between others, behind the last of them and before the first. */
  const amongMessages = (content: string): NamedRequest[] => {
    const [system, user] = [
      { role: 'system', content },
      { role: 'user', content: 'Hi.' },
    ]
    const answer = { role: 'assistant', content: 'Yes?' }
    const places = {
      'before the others': [system, user],
      'behind the others': [user, system],
      'between them': [user, answer, system, user],
      'between answers': [user, answer, system, answer, user],
    }
    return ['claude-scripted', 'chat-scripted'].flatMap((model) =>
      Object.entries(places).map(([place, messages]) => ({
        name: `${model}: ${place}, ${content}`,
        format: 'messages' as const,
        body: { model, max_tokens: 20, messages },
      })),
    )
  }

  test.each(['cel: text.matches("AKIA[0-9A-Z]{16}")', 'cel: pii("CARD") > 0'])(
    '%s',
    async (rule) => {
      await putInForce(stack(), { rule, direction: 'request' })
      await expectAll(instructed(forbidden), 'refused')
      await expectAll(instructed('Be brief.'), 'served')
    },
  )

  test('the denylist', async () => {
    await applyConfig(stack(), { rules: { denylist: ['kumquat'] } })
    await expectAll(instructed(forbidden), 'refused')
    await expectAll(instructed('Be brief.'), 'served')
  })

  test('what is always blocked', async () => {
    await expectAll(instructed('[[cat:self-harm=0.99]]'), 'refused')
    await expectAll(instructed('[[cat:self-care=0.99]]'), 'served')
  })

  test('rules that name `system` see those among messages, and rules that name `user_text` do not', async () => {
    await putInForce(stack(), {
      rule: 'cel: system.contains("kumquat") || user_text.contains("orange")',
      direction: 'request',
    })
    await expectAll(amongMessages('kumquat'), 'refused')
    await expectAll(amongMessages('orange'), 'served')
  })
})

describe('files that are text are judged, whatever they are called', () => {
  const toBase64 = (text: string) => Buffer.from(text).toString('base64')
  const dataOf = (type: string, text: string) => `data:${type};base64,${toBase64(text)}`

  const partsOf: Record<Format, (text: string) => Record<string, object>> = {
    messages: (text) => ({
      'text source': {
        type: 'document',
        source: { type: 'text', media_type: 'text/plain', data: text },
      },
      'base64 source': {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: toBase64(text) },
      },
    }),
    chat: (text) => filesOf(text, (file) => ({ type: 'file', file })),
    responses: (text) => filesOf(text, (file) => ({ type: 'input_file', ...file })),
  }
  function filesOf(text: string, toPart: (file: object) => object) {
    const files = {
      'a.txt': dataOf('text/plain', text),
      'a.json': dataOf('application/json', text),
      'a.py': dataOf('application/octet-stream', text),
      'a.md': toBase64(text),
    }
    return Object.fromEntries(
      Object.entries(files).map(([filename, file_data]) => [
        filename,
        toPart({ filename, file_data }),
      ]),
    )
  }

  const attached = (text: string): NamedRequest[] =>
    ways.flatMap(({ name, format, isStreamed }) =>
      Object.entries(partsOf[format](text)).map(([part, file]) => {
        const words = { type: format === 'responses' ? 'input_text' : 'text', text: 'Hi.' }
        const said = [{ role: 'user', content: [file, words] }]
        const asked = format === 'responses' ? { input: said } : { messages: said }
        const limit = format === 'messages' && { max_tokens: 20 }
        const body = { model: modelOf[format], stream: isStreamed, ...asked, ...limit }
        return { name: `${name}: ${part}`, format, body }
      }),
    )

  test('what is always blocked', async () => {
    await expectAll(attached('{"a":"[[cat:self-harm=0.99]]"}'), 'refused')
    await expectAll(attached('{"a":"[[cat:self-care=0.99]]"}'), 'served')
  })

  test('an exact rule', async () => {
    await putInForce(stack(), { rule: 'cel: text.contains("kumquat")', direction: 'request' })
    await expectAll(attached('{"a":"a kumquat"}'), 'refused')
    await expectAll(attached('{"a":"an orange"}'), 'served')
  })

  test('the denylist', async () => {
    await applyConfig(stack(), { rules: { denylist: ['kumquat'] } })
    await expectAll(attached('{"a":"a kumquat"}'), 'refused')
    await expectAll(attached('{"a":"an orange"}'), 'served')
  })
})
