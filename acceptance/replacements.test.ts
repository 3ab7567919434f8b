import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { eventually, readCallEvents } from './support/policies/enforcing.ts'
import { saveConfig } from './support/policies/gateway-config.ts'
import { anthropic } from './support/sdk/anthropic.ts'
import { tools } from './support/sdk/caller.ts'
import { openaiChat } from './support/sdk/openai-chat.ts'
import { openAiClient, openaiResponses } from './support/sdk/openai-responses.ts'
import { beginRaw, formats, hiddenPromptFor, pathOf } from './support/streams/call.ts'
import { expectBrokenStream } from './support/streams/errors.ts'
import { textOf } from './support/streams/text.ts'
import { stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// What callers and the official SDKs see where a configuration wants other words instead of a refusal. The rewriter of the
// stack is a scripted model, which says the same to everybody.

const otherWords = 'Hello from the scripted upstream.'

const stack = useStack({ paidUsd: '100' })

/** What is blocked, and what the rewriter says. */
const rules = { flagged_categories: ['hate'], denylist: ['falcon'] }

beforeAll(() => saveConfig(stack(), { rules, refusal_replacement: { mode: 'rewrite' } }))

const models = ['claude-scripted', 'chat-scripted', 'responses-scripted'] as const
const directions = ['request', 'response'] as const
const ways = formats.flatMap((format) =>
  directions.flatMap((direction) =>
    [true, false].map((isStreamed) => ({ format, direction, isStreamed })),
  ),
)
type Way = (typeof ways)[number] & { mark?: string; model?: (typeof models)[number] }

const harmless = 'The sun rose over a quiet hill and a bird sang of it. '.repeat(8)

/** A prompt that is blocked, or one whose answer is. In the prompt nobody can read the mark of the answer. */
const promptOf = ({ direction, mark = '[[cat:hate=0.9]]' }: Way) =>
  direction === 'request'
    ? `Tell me about ${mark} please.`
    : hiddenPromptFor({ text: `${harmless}${mark} and then. ${harmless}` })

const sdks = { messages: anthropic, chat: openaiChat, responses: openaiResponses } as const
const endOf = { messages: 'refusal', chat: 'content_filter', responses: 'content_filter' } as const

const open = ({ format, isStreamed, model = 'chat-scripted' }: Way) => {
  const { base_url: baseUrl, project_key: key } = stack().description
  return sdks[format].open({ baseUrl, key, model, isStreamed })
}

function expectReplaced(text: string, { direction, isStreamed }: Way) {
  if (direction === 'request' || !isStreamed) return expect(text).toBe(otherWords)
  const sent = text.slice(0, -otherWords.length).trimEnd()
  expect(text.endsWith(otherWords)).toBe(true)
  expect(sent.length).toBeGreaterThanOrEqual(90)
  return expect(harmless.startsWith(sent)).toBe(true)
}

describe.each(models)('the official SDKs, with an upstream of %s', (model) => {
  test.each(ways)(
    '$format, $direction, streamed: $isStreamed: an answer with other words',
    async (way) => {
      const conversation = open({ ...way, model })
      const answer = await conversation.sendMessage(promptOf(way))
      expectReplaced(answer.text, way)
      expect(answer.stop).toContain(endOf[way.format])
      const { input, output } = answer.usage
      if (way.direction === 'request') expect([input, output]).toEqual([0, 0])
      else expect(output).toBeGreaterThan(0)
    },
  )
})

describe('a call of a tool that was cut', () => {
  const way = { direction: 'response', isStreamed: true } as const
  const toolCalls = [{ name: 'weather', arguments: { city: `${harmless}falcon ${harmless}` } }]
  const prompt = hiddenPromptFor({ text: '', toolCalls, argumentPieces: 40 })
  const { parameters } = tools.weather
  const client = () => {
    const { base_url: baseUrl, project_key: key } = stack().description
    return openAiClient({ baseUrl, key, model: '', isStreamed: true })
  }

  test('messages: the answer ends with a refusal', async () => {
    const answer = await open({ ...way, format: 'messages' }).sendMessage(prompt, {
      hasTools: true,
    })
    expect([answer.text, answer.stop]).toEqual([otherWords, 'refusal'])
  })

  test('responses: the item is incomplete, and so is the answer', async () => {
    const stream = client().responses.stream({
      model: 'responses-scripted',
      input: prompt,
      tools: [{ type: 'function', name: 'weather', parameters, strict: false }],
    })
    const { status, output, output_text: text } = await stream.finalResponse()
    expect([status, text]).toEqual(['incomplete', otherWords])
    expect(output).toMatchObject([
      { type: 'function_call', status: 'incomplete' },
      { type: 'message', status: 'completed' },
    ])
  })

  test('chat: the arguments do not look complete', async () => {
    const stream = client().chat.completions.stream({
      model: 'chat-scripted',
      messages: [{ role: 'user', content: prompt }],
      tools: [{ type: 'function', function: { name: 'weather', parameters } }],
    })
    const [choice] = (await stream.finalChatCompletion()).choices
    expect(choice?.finish_reason).toBe('content_filter')
    expect(choice?.message.content).toBe(otherWords)
    const [call] = choice?.message.tool_calls ?? []
    const sent = call?.type === 'function' ? call.function.arguments : ''
    expect(() => JSON.parse(sent) as unknown).toThrow(SyntaxError)
  })
})

test.each(formats)('%s: an answer that nothing blocks is whole', async (format) => {
  const way = { format, direction: 'response', isStreamed: true, mark: 'a kestrel' } as const
  const answer = await open(way).sendMessage(promptOf(way))
  expect(answer.text).toBe(`${harmless}a kestrel and then. ${harmless}`)
})

const send = (way: Way, baseUrl = stack().description.base_url) => {
  const { format, isStreamed } = way
  const content = promptOf(way)
  const asked =
    format === 'responses' ? { input: content } : { messages: [{ role: 'user', content }] }
  const limit = format === 'messages' && { max_tokens: 500 }
  const body = { model: way.model ?? 'chat-scripted', ...asked, ...limit, stream: isStreamed }
  const target = { baseUrl, credential: stack().description.project_key }
  return beginRaw(target, { path: pathOf[format], payload: JSON.stringify(body) }).answer
}

async function readEvent(requestId = '') {
  const read = () => readCallEvents(stack(), requestId)
  await expect.poll(read, eventually).toHaveLength(1)
  return (await read())[0]
}

const countUpstream = async () => (await stateOf(stack().description.upstream_url)).requests

describe.each(ways)('$format, $direction, streamed: $isStreamed', (way) => {
  test.each(['[[cat:hate=0.9]]', 'falcon'])(
    '%s: 200, what it costs, and what is recorded',
    async (mark) => {
      const before = await countUpstream()
      const answer = await send({ ...way, mark })
      expect(answer.status).toBe(200)
      expect(answer.text).toContain('scripted upstream')
      expect(answer.text).not.toMatch(/blocked|and then|falcon|\[\[cat/)
      if (way.isStreamed) expectReplaced(textOf(answer.text), way)
      const isAnswer = way.direction === 'response'
      // The rewriter, and the model unless its request was blocked.
      expect((await countUpstream()) - before).toBe(isAnswer ? 2 : 1)
      const used = /"estimated_credits_used":\s*(\d+)/.exec(answer.text)?.[1]
      expect(Number(used) > 0).toBe(isAnswer)
      const event = await readEvent(answer.headers['x-request-id'])
      expect(event).toMatchObject({
        outcome: 'blocked',
        decision: 'rewrite',
        effective_decision: 'rewrite',
        reason_code: 'REWRITE',
        replacement_model: 'claude-scripted',
      })
      expect(event?.['replacement_tokens']).toBeGreaterThan(0)
    },
  )

  test('other words that are not allowed either: refused', async () => {
    await saveConfig(stack(), {
      rules: { ...rules, denylist: ['falcon', 'scripted upstream'] },
      refusal_replacement: { mode: 'summary' },
    })
    onTestFinished(() => saveConfig(stack(), { rules, refusal_replacement: { mode: 'rewrite' } }))
    await expectRefused(way)
  })

  test('what is always blocked is refused, whatever the configuration says', async () => {
    const answer = await expectRefused({ ...way, mark: '[[cat:self-harm=0.9]] falcon' })
    expect(answer.text).toContain('self-harm')
  })
})

async function expectRefused(way: Way, baseUrl?: string) {
  const answer = await send({ mark: 'falcon', ...way }, baseUrl)
  if (way.direction === 'response' && way.isStreamed) expectBrokenStream(answer, way.format)
  else expect(answer.status).toBe(400)
  expect(answer.text).toMatch(/policy_blocked|moderation_blocked/)
  expect(answer.text).not.toContain(otherWords)
  const event = await readEvent(answer.headers['x-request-id'])
  expect(event).toMatchObject({ outcome: 'blocked', effective_decision: 'refuse' })
  expect(event).not.toHaveProperty('replacement_model')
  return answer
}
