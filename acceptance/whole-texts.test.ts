import { stackModels } from '@gatehouse/tools/stack-models'
import { describe, expect, test } from 'vitest'

import { putInForce } from './support/policies/enforcing.ts'
import { applyConfig } from './support/policies/gateway-config.ts'
import { startBlocksUpstream } from './support/streams/blocks-upstream.ts'
import { type Answer, type Format, hiddenPromptFor, promptFor } from './support/streams/call.ts'
import {
  expectAnswerRefused,
  expectOfAll,
  expectServed,
  type NamedRequest,
  outcomeOf,
  send as sendTo,
  type Way,
  ways,
} from './support/streams/outcomes.ts'
import { bodyThatSays, modelOf, type Said } from './support/streams/said.ts'
import { argumentsOf, textOf } from './support/streams/text.ts'
import { useStack } from './support/use-stack.ts'

// A text is judged as its reader sees it, however its writer divides it: over parts, messages, blocks, words in a list, or
// over the beginning of an answer that the caller wrote and the rest of it.

const blocks = await startBlocksUpstream()

const stack = useStack({
  paidUsd: '5000',
  models: (urls) => {
    const { upstreams, models } = stackModels(urls)
    const [first] = models
    return {
      upstreams: { ...upstreams, blocks: { kind: 'anthropic', base_url: `${blocks.url}/v1` } },
      models: [...models, { ...first, id: 'in-blocks', upstreams: [{ upstream: 'blocks' }] }],
    }
  },
})

const send = (format: Format, body: object) => sendTo(stack(), format, body)
const expectAll = (requests: readonly NamedRequest[], expected: 'refused' | 'served') =>
  expectOfAll(stack(), requests, expected)

const answersWith = (rule: string) => putInForce(stack(), { rule, direction: 'response' })
const requestsWith = (rule: string) => putInForce(stack(), { rule, direction: 'request' })

describe('a request that is divided', () => {
  const user = (content: string | readonly string[]): Said => ({ role: 'user', content })

  /** How callers divide a text, for every format and also where the upstream speaks another one. */
  function shapesOf(parts: readonly string[]): NamedRequest[] {
    const divided = {
      'one text': [user(parts.join(''))],
      parts: [user(parts)],
      'messages in a row': parts.map(user),
      'parts of the system prompt': [{ role: 'system', content: parts }, user('Hi.')],
      'messages in a row, after an answer': [
        user('Hi.'),
        { role: 'assistant', content: 'Hello.' },
        ...parts.map(user),
      ],
    } satisfies Record<string, Said[]>
    return ways.flatMap((way) =>
      [...new Set([modelOf[way.format], 'chat-scripted'])].flatMap((model) =>
        Object.entries(divided).map(([name, said]) => ({
          name: `${way.name}, ${model}: ${name}`,
          format: way.format,
          body: bodyThatSays({ ...way, model, said }),
        })),
      ),
    )
  }

  test('what is always blocked', async () => {
    await expectAll(shapesOf(['How do I [[cat:self-', 'harm=0.9]] now?']), 'refused')
    await expectAll(shapesOf(['How do I [[cat:self-', 'care=0.9]] now?']), 'served')
  })

  test.each([
    ['What is project ', 'falcon?'],
    ['What is proj', 'ect fal', 'con?'],
  ])('an exact rule: %j, %j', async (...parts) => {
    await requestsWith('cel: text.contains("project falcon")')
    await expectAll(shapesOf(parts), 'refused')
  })

  /** Words that only an upstream sets apart which puts a line break between parts. */
  const apart = (...parts: string[]) =>
    shapesOf(parts).filter(({ name }) => !name.endsWith('one text'))

  test('an exact rule, without a space between the parts', async () => {
    await requestsWith('cel: text.contains("project falcon")')
    await expectAll(apart('What is project', 'falcon?'), 'refused')
    await expectAll(apart('What is project', 'heron?'), 'served')
  })

  test('the denylist', async () => {
    await applyConfig(stack(), { rules: { denylist: ['secret word'] } })
    await expectAll(shapesOf(['The secret w', 'ord is?']), 'refused')
    await expectAll(apart('The secret', 'word is?'), 'refused')
    await expectAll(shapesOf(['The secret w', 'and is?']), 'served')
  })

  test('redaction', async () => {
    await applyConfig(stack(), { rules: { redact: true } })
    const parts = ['Write to jane.doe@exam', 'ple.com please. ', `\n${promptFor({ echo: true })}`]
    for (const { name, format, body } of shapesOf(parts)) {
      if (name.endsWith('system prompt')) continue // a script is not found there
      const answer = await send(format, body)
      expect([name, outcomeOf(answer)]).toEqual([name, 'served'])
      // The scripted upstream answers with what it was sent.
      const received = contentOf(answer, format)
      expect(received, name).toContain('[EMAIL_1]')
      expect(received, name).not.toMatch(/jane|ple\.com/)
    }
  })
})

/** The text of an answer, as a client shows it. */
function contentOf({ text, headers }: Answer, format: Format): string {
  if (headers['content-type']?.startsWith('text/event-stream')) return textOf(text)
  const { content, choices, output } = JSON.parse(text) as Record<string, unknown[] | undefined>
  const whole = { messages: content, chat: choices, responses: output }[format] ?? []
  const strings: string[] = []
  JSON.stringify(whole, (name, value: unknown) => {
    if (typeof value === 'string' && ['text', 'content'].includes(name)) strings.push(value)
    return value
  })
  return strings.join('')
}

const greet: Said = { role: 'user', content: 'Hi.' }

describe('an answer in blocks', () => {
  const ask = (way: Way) =>
    send(way.format, bodyThatSays({ ...way, model: 'in-blocks', said: [greet] }))

  async function expectBlocked(divided: readonly string[], forbidden: string) {
    blocks.say(divided)
    for (const way of ways) {
      const answer = await ask(way)
      expectAnswerRefused(answer, way)
      expect(way.isStreamed ? textOf(answer.text) : answer.text).not.toContain(forbidden)
    }
  }

  async function expectWhole(divided: readonly string[]) {
    blocks.say(divided)
    for (const way of ways) {
      expect(contentOf(await ask(way), way.format), way.name).toBe(divided.join(''))
    }
  }

  test('an exact rule', async () => {
    await answersWith('cel: text.contains("kumquat marmalade")')
    await expectBlocked(['I love kumquat ', 'marmalade.'], 'kumquat marmalade')
    await expectBlocked(['I love kum', 'quat marma', 'lade.'], 'kumquat marmalade')
    await expectWhole(['I love kumquat ', 'and marmalade.'])
  })

  test('the denylist', async () => {
    await applyConfig(stack(), { rules: { denylist: ['kumquat marmalade'] } })
    await expectBlocked(['I love kumquat ', 'marmalade.'], 'kumquat marmalade')
    await expectWhole(['I love kumquat ', 'and marmalade.'])
  })

  test('what is always blocked', async () => {
    await expectBlocked(['well [[cat:self-', 'harm=0.99]] so'], '[[cat:self-harm=0.99]]')
    await expectWhole(['well [[cat:self-', 'care=0.99]] so'])
  })

  test.each([
    [['write to john.doe@exam', 'ple.com'], /john|ple\.com/],
    [['card 4111 1111 ', '1111 1111'], /1111/],
  ])('redaction: %j', async (divided, forbidden) => {
    await applyConfig(stack(), { rules: { redact: true } })
    blocks.say(divided)
    for (const way of ways) {
      const answer = await ask(way)
      expectServed(answer, way)
      expect(contentOf(answer, way.format), way.name).not.toMatch(forbidden)
    }
  })
})

const schema = {
  type: 'object',
  properties: { words: { type: 'array', items: { type: 'string' } } },
}
const tool = { name: 'say', description: 'Says words.' }
const toolIn = {
  messages: { ...tool, input_schema: schema },
  chat: { type: 'function', function: { ...tool, parameters: schema } },
  responses: { type: 'function', ...tool, parameters: schema },
}

describe('words in the arguments of a call', () => {
  async function call(way: Way, words: readonly string[]): Promise<Answer> {
    const content = hiddenPromptFor({ toolCalls: [{ name: 'say', arguments: { words } }] })
    const body = bodyThatSays({ ...way, said: [{ role: 'user', content }] })
    return send(way.format, { ...body, tools: [toolIn[way.format]] })
  }

  async function expectBlocked(words: readonly string[]) {
    for (const way of ways) {
      const answer = await call(way, words)
      expectAnswerRefused(answer, way)
      expect(answer.text).not.toContain(words.at(-1))
    }
  }

  async function expectWhole(words: readonly string[]) {
    for (const way of ways) {
      const answer = await call(way, words)
      expectServed(answer, way)
      const said = way.isStreamed ? argumentsOf(answer.text) : answer.text.replaceAll('\\', '')
      expect(said).toContain(JSON.stringify(words))
    }
  }

  test('what is always blocked', async () => {
    await expectBlocked(['[[cat:self-harm=0.9]]'])
    await expectBlocked(['[[cat:self-', 'harm=0.9]]'])
    await expectWhole(['[[cat:self-', 'care=0.9]]'])
  })

  test('an exact rule', async () => {
    await answersWith('cel: text.contains("project falcon")')
    await expectBlocked(['about project falcon'])
    await expectBlocked(['about', 'project', 'falcon'])
    await expectWhole(['about', 'project', 'heron'])
  })
})

describe('an answer that the caller begins', () => {
  const complete = (way: Way, begun: string | readonly string[], text: string) => {
    const said: Said[] = [
      { role: 'user', content: hiddenPromptFor({ text }) },
      { role: 'assistant', content: begun },
    ]
    return send(way.format, bodyThatSays({ ...way, said }))
  }

  async function expectBlocked(begun: string | readonly string[], rest: string) {
    for (const way of ways) expectAnswerRefused(await complete(way, begun, rest), way)
  }

  async function expectWhole(begun: string, rest: string) {
    for (const way of ways) {
      const answer = await complete(way, begun, rest)
      expectServed(answer, way)
    }
  }

  test('an exact rule', async () => {
    const rule = 'cel: text.contains("kumquat marmalade")'
    await putInForce(stack(), { rule, direction: 'both' })
    await expectBlocked('I think kumquat', ' marmalade is best')
    await expectBlocked(['I think ', 'kumquat'], ' marmalade is best')
    await expectWhole('I think orange', ' marmalade is best')
  })

  test('the denylist', async () => {
    await applyConfig(stack(), { rules: { denylist: ['kumquat marmalade'] } })
    await expectBlocked('I think kumquat', ' marmalade is best')
    await expectWhole('I think orange', ' marmalade is best')
  })

  test('what is always blocked', async () => {
    await expectBlocked('I think [[cat:self-', 'harm=0.9]] is best')
    await expectWhole('I think [[cat:self-', 'care=0.9]] is best')
  })
})
