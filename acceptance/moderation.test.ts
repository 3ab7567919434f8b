import type { Stack } from '@gatehouse/tools/start-stack'
import { describe, expect, onTestFinished, test } from 'vitest'

import { type Account, openAccount } from './support/credits/money.ts'
import { eventually, readCallEvents } from './support/policies/enforcing.ts'
import { anthropic } from './support/sdk/anthropic.ts'
import type { Caller, ReportedError } from './support/sdk/caller.ts'
import { openaiChat } from './support/sdk/openai-chat.ts'
import { openaiResponses } from './support/sdk/openai-responses.ts'
import {
  ask,
  beginRaw,
  type Format,
  formats,
  hiddenPromptFor,
  pathOf,
} from './support/streams/call.ts'
import { expectBrokenStream, expectRefusal } from './support/streams/errors.ts'
import { textOf } from './support/streams/text.ts'
import { stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// What callers, their SDKs, the ledger and the audit log see of moderation. The scorer of the stack is scripted: it finds
// marks such as [[cat:hate=0.9]]. Blocked answers go on after the mark for longer than any window.

const stack = useStack()

const modelOf = {
  messages: 'claude-scripted',
  chat: 'chat-scripted',
  responses: 'responses-scripted',
} as const satisfies Record<Format, string>

const directions = ['request', 'response'] as const
type Direction = (typeof directions)[number]

const ways = formats.flatMap((format) =>
  directions.flatMap((direction) =>
    [true, false].map((isStreamed) => ({ format, direction, isStreamed })),
  ),
)
type Way = (typeof ways)[number]
const nameOf = ({ format, direction, isStreamed }: Way) =>
  `${format}, ${direction}, ${isStreamed ? 'streamed' : 'plain'}`

/** Harmless words, enough for the first windows of an answer. */
const harmless = 'The sun rose over a quiet hill and a bird sang of it. '.repeat(8)

/** A prompt with the mark, or one whose answer has it. In the prompt the scorer cannot read the mark of the answer. */
const promptOf = (direction: Direction, mark: string) =>
  direction === 'request'
    ? `Tell me about ${mark} please.`
    : hiddenPromptFor({ text: `${harmless}${mark} and then. ${harmless}` })

function bodyOf({ format, direction, isStreamed }: Way, mark: string, members: object = {}) {
  const content = promptOf(direction, mark)
  const input =
    format === 'responses' ? { input: content } : { messages: [{ role: 'user', content }] }
  const limit = format === 'messages' && { max_tokens: 500 }
  return { model: modelOf[format], ...input, ...limit, stream: isStreamed, ...members }
}

const send = (account: Account, way: Way, mark: string, members?: object) =>
  beginRaw(account.target, {
    path: pathOf[way.format],
    payload: JSON.stringify(bodyOf(way, mark, members)),
  }).answer

const countUpstream = async () => (await stateOf(stack().description.upstream_url)).requests

const granted = 5_000_000

const openRich = (name: string) => openAccount(stack(), name, granted)

/** What is recorded of a call. Of a stream that was cut it is written when its caller has everything already. */
async function readEvent(requestId = '') {
  const read = () => readCallEvents(stack(), requestId)
  await expect.poll(read, eventually).toHaveLength(1)
  return (await read())[0]
}

describe.each(ways)('$format, $direction, streamed: $isStreamed', (way) => {
  const isAnswer = way.direction === 'response'

  test('a category that is always blocked: the error, the credits and the event', async () => {
    const account = await openRich(nameOf(way))
    const before = await countUpstream()
    const answer = await send(account, way, '[[cat:self-harm=0.9]]')
    if (isAnswer && way.isStreamed) {
      expectBrokenStream(answer, way.format)
      const received = textOf(answer.text)
      expect(harmless.startsWith(received)).toBe(true)
      // The first window has passed.
      expect(received.length).toBeGreaterThanOrEqual(90)
    } else {
      const refusal = { status: 400, code: 'moderation_blocked' }
      expectRefusal(answer, way.format, { ...refusal, messagesType: 'invalid_request_error' })
      expect(answer.text).not.toContain('quiet hill')
    }
    expect(answer.text).toContain('moderation_blocked')
    expect(answer.text).toContain('category self-harm')
    expect(answer.text).toContain('https://findahelpline.com')
    // The whole message: what an error says is cut after 300 characters.
    expect(answer.text).toContain('call the emergency services.')
    expect(answer.text).not.toContain('and then')
    expect(answer.headers['x-policy-decision']).toBe(
      isAnswer && way.isStreamed ? 'allow' : 'refuse',
    )
    expect((await countUpstream()) - before).toBe(isAnswer ? 1 : 0)
    const event = await readEvent(answer.headers['x-request-id'])
    expect(event).toMatchObject({ outcome: 'blocked', triggered_categories: ['self-harm'] })
    await expectCharged(account, isAnswer)
  })

  test('flagged_categories: the category that was asked for, and no other', async () => {
    const account = await openRich(`${nameOf(way)}, flagged`)
    const hate = '[[cat:hate=0.9]]'
    const served = await send(account, way, hate, { flagged_categories: ['sexual'] })
    expect(served.status).toBe(200)
    expect(served.text).not.toContain('moderation_blocked')
    expect(await readEvent(served.headers['x-request-id'])).not.toHaveProperty(
      'triggered_categories',
    )
    const blocked = await send(account, way, hate, { flagged_categories: ['hate'] })
    expect(blocked.status).toBe(isAnswer && way.isStreamed ? 200 : 400)
    expect(blocked.text).toContain('category hate')
    expect(await readEvent(blocked.headers['x-request-id'])).toMatchObject({
      outcome: 'blocked',
      triggered_categories: ['hate'],
    })
  })
})

/** A blocked request is settled at nothing, because its scorer is asked after the hold; a blocked answer at what was generated. */
async function expectCharged(account: Account, isCharged: boolean) {
  await expect.poll(() => account.calls(), eventually).toHaveLength(1)
  const [entry] = await account.calls()
  expect([Number(entry?.output_tokens) > 0, Number(entry?.amount) > 0]).toEqual([
    isCharged,
    isCharged,
  ])
  expect(await account.balance()).toBe(granted - (entry?.amount ?? NaN))
}

const sdks = { messages: anthropic, chat: openaiChat, responses: openaiResponses } as const

async function captureError(client: Caller, way: Way, target: Account['target']) {
  const { baseUrl, credential: key } = target
  const connection = { baseUrl, key, model: modelOf[way.format], isStreamed: way.isStreamed }
  const prompt = promptOf(way.direction, '[[cat:self-harm=0.9]]')
  const failed = await client
    .open(connection)
    .sendMessage(prompt)
    .then(
      () => undefined,
      (error: unknown) => error,
    )
  expect(failed, 'the call did not fail').toBeDefined()
  return client.describeError(failed)
}

describe('the official SDKs', () => {
  const target = () => ({
    baseUrl: stack().description.base_url,
    credential: stack().description.project_key,
  })

  test.each(ways)(
    '$format, $direction, streamed: $isStreamed: an API error with its code, which says why',
    async (way) => {
      const error: ReportedError = await captureError(sdks[way.format], way, target())
      expect(error.message).toContain('moderation found content of the category self-harm')
      // The status of a stream is sent before the model answers.
      const isMidway = way.direction === 'response' && way.isStreamed
      expect([error.kind, error.status, error.code]).toEqual([
        ...(isMidway ? ['APIError', undefined] : ['BadRequestError', 400]),
        'moderation_blocked',
      ])
    },
  )
})

/** A further process of the stack, with these settings; it is not waited for until it is ready. */
async function startApi(of: Stack, name: string, environment: Record<string, string>) {
  const api = await of.startApi(name, environment)
  onTestFinished(() => void api.child.kill('SIGTERM'))
  const readiness = async () => {
    const answer = await fetch(new URL('/health/ready', api.metricsUrl))
    return { status: answer.status, text: await answer.text() }
  }
  return { baseUrl: api.baseUrl, readiness }
}

test('without MODERATION_FILE calls to models are 503, and readiness says why', async () => {
  const account = await openRich('Unmoderated')
  const api = await startApi(stack(), 'api-unmoderated', { MODERATION_FILE: '' })
  await expect.poll(async () => (await api.readiness()).text, eventually).toContain('no scorer')
  const { status, text } = await api.readiness()
  expect([status, text]).toEqual([503, expect.stringContaining('self-harm and sexual/minors')])
  expect(text).toContain('MODERATION_FILE')
  expect((await fetch(`${api.baseUrl}/health/ready`)).status).toBe(503)
  const target = { ...account.target, baseUrl: api.baseUrl }
  for (const format of formats) {
    const answer = await ask(target, { format, model: modelOf[format] })
    const code = 'policy_evaluation_unavailable'
    expectRefusal(answer, format, { status: 503, code, messagesType: 'api_error' })
  }
  expect([await account.balance(), await account.calls()]).toEqual([granted, []])
})
