import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'

import { expect, test, vi } from 'vitest'

import type { House } from '#assemble.ts'
import type { Piece } from '#formats/answer.ts'
import { ApiError } from '#platform/api-error.ts'
import {
  completion,
  outcomesOf,
  preparePlainCalls,
  priceOfUsage,
  sendPlain,
  sendStream,
  usage,
} from '#testing/plain-calls.ts'

import type { CallChecks } from './enforcement/call-checks.ts'
import { openFakeChecks } from './enforcement/testing/fake-checks.ts'

// A plain call asks its upstream plainly, and every rule for answers holds for what comes.

test('a short plain call is asked plainly, and the answer is the upstream’s own with the receipt', async () => {
  const calls = await preparePlainCalls()
  const text = JSON.stringify(completion('Hi'), null, 1).replace('"c"', '12345678901234567890')
  calls.upstream.behave = (response) => sendPlain(response, text)
  const answer = await calls.ask({ stream_options: { include_usage: true } })
  const receipt =
    '"remaining_credits":999950,"estimated_credits_used":50,"estimated_cost_usd":0.00005}'
  expect(answer).toEqual({ status: 200, text: `${text.slice(0, -1)},${receipt}` })
  expect(calls.upstream.bodies).toHaveLength(1)
  expect(calls.upstream.bodies[0]).toMatchObject({ stream: false, max_completion_tokens: 1000 })
  expect(calls.upstream.bodies[0]).not.toHaveProperty('stream_options')
  expect(await outcomesOf(calls)).toEqual({
    charged: [priceOfUsage],
    outcomes: ['completed'],
    held: 0,
  })
})

test.each([
  ['a streamed call', { stream: true }, true],
  ['a call for more output than 8192 tokens', { max_tokens: 8193 }, true],
  ['a model that is always streamed', { model: 'streams' }, true],
  ['a call for as many', { max_tokens: 8192 }, false],
])('%s asks for a stream, or not', async (_, body, isStream) => {
  const calls = await preparePlainCalls()
  calls.upstream.behave = (response) =>
    isStream ? sendStream(response, 'Hi') : sendPlain(response, completion('Hi'))
  const { status, text } = await calls.ask(body)
  expect([status, text]).toEqual([200, expect.stringContaining('Hi')])
  expect(calls.upstream.bodies).toEqual([expect.objectContaining({ stream: isStream })])
  expect((await outcomesOf(calls)).charged).toEqual([priceOfUsage])
})

test('callers of other formats get the plain answer in their own', async () => {
  const calls = await preparePlainCalls()
  calls.upstream.behave = (response) => sendPlain(response, completion('Hi'))
  const message = await calls.ask({ max_tokens: 90 }, '/v1/messages')
  expect(JSON.parse(message.text)).toMatchObject({
    type: 'message',
    content: [{ type: 'text', text: 'Hi' }],
    usage: { input_tokens: 20, output_tokens: 30 },
    estimated_credits_used: priceOfUsage,
  })
  const response = await calls.ask({ input: 'Hello', messages: undefined }, '/v1/responses')
  expect(JSON.parse(response.text)).toMatchObject({
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', content: [{ text: 'Hi' }] }],
    estimated_credits_used: priceOfUsage,
  })
  expect(calls.upstream.bodies.map(({ stream }) => stream)).toEqual([false, false])
})

test('an upstream that streams although it should not is understood', async () => {
  const calls = await preparePlainCalls()
  calls.upstream.behave = (response) => sendStream(response, 'Hi')
  const { status, text } = await calls.ask()
  expect([status, JSON.parse(text)]).toMatchObject([
    200,
    { object: 'chat.completion', choices: [{ message: { content: 'Hi' } }], usage },
  ])
})

test('an answer without usage is counted, and the caller is told so', async () => {
  const calls = await preparePlainCalls()
  calls.upstream.behave = (response) =>
    sendPlain(response, { ...completion('word '.repeat(100)), usage: undefined })
  const answer = JSON.parse((await calls.ask()).text) as {
    usage: { prompt_tokens: number; completion_tokens: number }
    estimated_credits_used: number
  }
  const { prompt_tokens, completion_tokens } = answer.usage
  expect(completion_tokens).toBeGreaterThan(90)
  expect(answer.estimated_credits_used).toBe(prompt_tokens + completion_tokens)
})

test('first byte and idle time of a plain call have no deadline of their own', async () => {
  const settings = { first_byte_timeout_ms: 100, idle_timeout_ms: 100 }
  const calls = await preparePlainCalls({ settings })
  calls.upstream.behave = async (response) => {
    // Timers of connections are only checked about once a second.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    response.writeHead(200, { 'content-type': 'application/json' }).write(' ')
    setTimeout(() => response.end(JSON.stringify(completion('Late'))), 1500)
  }
  const { status, text } = await calls.ask()
  expect([status, text]).toEqual([200, expect.stringContaining('Late')])
})

test('504: a plain call that takes longer than the whole time is ended, and costs nothing', async () => {
  const calls = await preparePlainCalls({ settings: { total_timeout_ms: 200 } })
  expect(await calls.ask()).toMatchObject({ status: 504 })
  expect(await outcomesOf(calls)).toEqual({ charged: [0], outcomes: ['failed'], held: 0 })
  await vi.waitUntil(() => calls.upstream.open === 0)
})

/** Replaces the checks by some that guard answers like this. */
const withGuard =
  (guard: CallChecks['guard']) =>
  ({ inference, ...house }: House): House => {
    const openChecks = openFakeChecks(() => ({ checks: { guard } }))
    return { ...house, inference: { ...inference, steps: { ...inference.steps, openChecks } } }
  }

test('the guard gets a plain answer as one piece with all its events, before its caller gets anything', async () => {
  const seen: Piece[] = []
  const calls = await preparePlainCalls({
    change: withGuard(async function* guard(callModel) {
      for await (const piece of callModel()) {
        seen.push(piece)
        if (seen.length > 0) throw new ApiError('policy_blocked', 'A policy blocks this.')
        yield piece
      }
    }),
  })
  calls.upstream.behave = (response) => sendPlain(response, completion('A secret'))
  const { status, text } = await calls.ask()
  expect([status, text.includes('secret')]).toEqual([400, false])
  expect(seen.flatMap(({ frames }) => frames.map(({ events }) => events))).toEqual([
    [
      expect.objectContaining({ type: 'started' }),
      { type: 'block_started', index: 0, block: { type: 'text' } },
      { type: 'block_delta', index: 0, text: 'A secret' },
      { type: 'block_ended', index: 0 },
      expect.objectContaining({ type: 'finished', reason: 'end' }),
    ],
  ])
  expect(seen).toEqual([expect.objectContaining({ isPlain: true, format: 'chat_completions' })])
})

const half = JSON.stringify(completion('Half')).slice(0, 60)
const json = { 'content-type': 'application/json' }
const secretless = 'The model provider sent something that is not an answer.'

test.each([
  ['is no JSON', (response) => sendPlain(response, '{"id":'), 2, secretless],
  ['is a list', (response) => sendPlain(response, '[]'), 2, secretless],
  ['has no choices', (response) => sendPlain(response, {}), 2, secretless],
  [
    'has another type',
    (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    2,
    secretless,
  ],
  [
    'is compressed',
    (response) =>
      response
        .writeHead(200, { ...json, 'content-encoding': 'gzip' })
        .end(gzipSync(JSON.stringify(completion('Hi')))),
    2,
    secretless,
  ],
  [
    'reports a failure',
    (response) => sendPlain(response, { error: { message: 'Oh.', type: 'server_error' } }),
    2,
    'The model provider failed: Oh.',
  ],
  [
    'breaks before it begins',
    (response) => {
      response.writeHead(200, json).write('  \n')
      setTimeout(() => response.destroy(), 20)
    },
    2,
    'The connection to the model provider broke.',
  ],
  [
    'ends in the middle',
    (response) => {
      response.writeHead(200, json).write(half)
      setTimeout(() => response.destroy(), 20)
    },
    1,
    'The connection to the model provider broke.',
  ],
  [
    'is shorter than it says',
    (response) => {
      response.writeHead(200, { ...json, 'content-length': 500 }).write(half)
      setTimeout(() => response.destroy(), 20)
    },
    1,
    'The connection to the model provider broke.',
  ],
  [
    'is too large',
    (response) => {
      const megabyte = Buffer.alloc(1024 * 1024, 'x')
      response.writeHead(200, json).write('{"id":"')
      const write = () => {
        while (!response.destroyed && response.write(megabyte));
      }
      response.on('drain', write).on('error', () => undefined)
      write()
    },
    1,
    'The answer of the model provider is too large.',
  ],
] satisfies [string, (response: Parameters<typeof sendPlain>[0]) => unknown, number, string][])(
  '502: an answer that %s is refused, after as many attempts as a stream would have',
  async (_, behave, attempts, message) => {
    const calls = await preparePlainCalls()
    calls.upstream.behave = behave
    const { status, text } = await calls.ask()
    expect([status, text]).toEqual([502, expect.stringContaining(message)])
    expect(calls.upstream.bodies).toHaveLength(attempts)
    expect(await outcomesOf(calls)).toEqual({ charged: [0], outcomes: ['failed'], held: 0 })
    await vi.waitUntil(() => calls.upstream.open === 0)
  },
)

test('answers that break in the middle do not take an upstream out of service', async () => {
  const calls = await preparePlainCalls()
  calls.upstream.behave = (response) => {
    response.writeHead(200, json).write(half)
    setTimeout(() => response.destroy(), 20)
  }
  for (let call = 1; call <= 6; call++) expect((await calls.ask()).status).toBe(502)
  calls.upstream.behave = (response) => sendPlain(response, completion('Hi'))
  expect((await calls.ask()).status).toBe(200)
})

test('400: what the upstream refuses is told in its words', async () => {
  const calls = await preparePlainCalls()
  calls.upstream.behave = (response) =>
    response
      .writeHead(400, json)
      .end(JSON.stringify({ error: { message: 'Too hot.', type: 'invalid_request_error' } }))
  const { status, text } = await calls.ask()
  expect([status, text]).toEqual([400, expect.stringContaining('Too hot.')])
  expect(calls.upstream.bodies).toHaveLength(1)
})

test('head and body of a plain answer are written to the caller at once', async () => {
  const calls = await preparePlainCalls()
  calls.upstream.behave = (response) => sendPlain(response, completion('Grüße '.repeat(500)))
  await calls.ask()
  let writes = 0
  calls.app.server.once('connection', (socket: Socket) => {
    // Every write of a socket, of one chunk or of several, goes through this method of Node.
    const watched = socket as unknown as { _writeGeneric(...given: unknown[]): void }
    const write = watched._writeGeneric.bind(socket)
    watched._writeGeneric = (...given) => {
      writes += 1
      write(...given)
    }
  })
  await calls.ask()
  expect(writes).toBe(1)
})
