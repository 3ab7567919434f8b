import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import type { Answered } from './call.ts'
import { ask, dialects, send, ways } from './raw-client.ts'
import { understand } from './read-answer.ts'
import { startScriptedUpstream } from './server.ts'

let upstream: Awaited<ReturnType<typeof startScriptedUpstream>>
beforeAll(async () => void (upstream = await startScriptedUpstream()))
beforeEach(() => send(upstream.url, '/control/reset', {}))
afterAll(() => upstream.stop())

const state = async () => JSON.parse((await send(upstream.url, '/control/state')).text)
const chat = { dialect: 'chat', stream: false } as const
const messages = { dialect: 'messages', stream: false } as const

test('the state counts requests and keeps the last fifty', async () => {
  for (let index = 0; index < 260; index++) {
    await send(
      upstream.url,
      '/v1/chat/completions',
      { model: `m${index}` },
      {
        headers: { 'x-mark': `${index}` },
      },
    )
  }
  const { requests, open, lastRequests } = await state()
  expect({ requests, open, kept: lastRequests.length }).toEqual({
    requests: 260,
    open: 0,
    kept: 50,
  })
  expect(lastRequests.at(-1)).toMatchObject({
    method: 'POST',
    path: '/v1/chat/completions',
    body: { model: 'm259' },
    headers: { 'x-mark': '259' },
  })
})

test.each(ways)('$dialect, stream $stream: every answer is reported, whole or cut', async (way) => {
  const reported: Answered[] = []
  await using stack = new AsyncDisposableStack()
  const { url, stop } = await startScriptedUpstream({ onAnswered: (each) => reported.push(each) })
  stack.defer(stop)
  const usage = { input: 7, output: 11 }
  await ask(url, way, { key: 'whole', text: 'one two', usage })
  await ask(url, way, { key: 'cut', text: 'one two', closeAfter: { pieces: 1 } })
  await expect.poll(() => reported.length).toBe(2)
  expect(reported).toMatchObject([
    { key: 'whole', isWhole: true, usage, pieces: way.stream ? 2 : 0 },
    { key: 'cut', isWhole: false, pieces: way.stream ? 1 : 0 },
  ])
})

test.each(ways)(
  '$dialect, stream $stream: the mode fails every call until the reset',
  async (way) => {
    await send(upstream.url, '/control/mode', { status: 529, retryAfter: 3 })
    const failed = await ask(upstream.url, way, { text: 'a' })
    expect(failed.status).toBe(529)
    expect(failed.headers['retry-after']).toBe('3')
    expect(JSON.parse(failed.text).error.type).toBe(
      way.dialect === 'messages' ? 'overloaded_error' : 'server_error',
    )
    await send(upstream.url, '/control/reset', {})
    expect((await ask(upstream.url, way, { text: 'a' })).status).toBe(200)
  },
)

test('a long body is answered, and only its length is kept', async () => {
  expect((await ask(upstream.url, chat, 'x'.repeat(1_100_000))).status).toBe(200)
  const [{ body, bodyCharacters }] = (await state()).lastRequests
  expect(body).toBeNull()
  expect(bodyCharacters).toBeGreaterThan(1_100_000)
})

test('a mode without a status is refused', async () => {
  const { status } = await send(upstream.url, '/control/mode', { stauts: 500 })
  expect(status).toBe(400)
})

test.each(dialects)('%s: repeatTimes fails only the first requests of a key', async (dialect) => {
  const way = { dialect, stream: true }
  const script = { repeatTimes: { n: 2 }, text: 'a' }
  const statusOf = async (key: string, further: object = {}) =>
    (await ask(upstream.url, way, { ...script, key, ...further })).status
  expect([await statusOf('k'), await statusOf('k'), await statusOf('k')]).toEqual([503, 503, 200])
  expect(await statusOf('other', { error: { status: 500 } })).toBe(500)
  const broken = { ...script, key: 'third', closeAfter: { pieces: 0 } }
  const answers = [1, 2, 3].map(() => ask(upstream.url, way, broken))
  const isBroken = (await Promise.all(answers)).map((one) => one.isBroken)
  expect(isBroken.filter(Boolean)).toHaveLength(2)
})

test('a script in base64 is done like any other', async () => {
  const script = Buffer.from('{"text":"Grüße"}').toString('base64')
  const answer = await ask(upstream.url, chat, `Go.\n#script ${script}`)
  expect(understand(answer, chat).text).toBe('Grüße')
})

test('repeatTimes without a key, and a script that is not JSON, are refused', async () => {
  expect((await ask(upstream.url, chat, { repeatTimes: { n: 1 } })).text).toContain('needs a')
  expect((await ask(upstream.url, chat, '#script {"text"')).text).toContain('is not JSON')
  expect((await ask(upstream.url, chat, '#script {"closeAfter":{}}')).status).toBe(400)
})

test('an echo hides the credential, the state does not', async () => {
  const headers = { authorization: 'Bearer canary', 'x-api-key': 'canary' }
  const body = { model: 'm', messages: [{ role: 'user', content: '#script {"echo":true}' }] }
  const { text } = await send(upstream.url, '/v1/chat/completions?a=b', body, { headers })
  expect(text).toContain('?a=b')
  expect(text).not.toContain('canary')
  expect(JSON.stringify(await state())).toContain('Bearer canary')
})

test('after tool results, the script of an earlier message is not used', async () => {
  const history = [
    { role: 'user', content: '#script {"text":"old"}' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'c', function: { name: 't' } }] },
    { role: 'tool', tool_call_id: 'c', content: 'result' },
  ]
  const answer = await send(upstream.url, '/v1/chat/completions', { model: 'm', messages: history })
  expect(understand(answer, chat).text).toContain('Hello')
})

describe('requests that the vendors refuse are refused', () => {
  const user = { role: 'user', content: 'a' }
  const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 't', input: {} }] }
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'b' }] }
  const chatCall = { role: 'assistant', content: null, tool_calls: [{ id: 'c' }] }
  const thinking = { type: 'enabled', budget_tokens: 2000 }
  test.each([
    ['/v1/messages', { messages: [user] }, 'max_tokens'],
    ['/v1/messages', { messages: [], max_tokens: 1 }, 'messages'],
    ['/v1/messages', { messages: [{ role: 'user', content: '' }], max_tokens: 1 }, 'non-empty'],
    ['/v1/messages', { messages: [user, call, result], max_tokens: 1 }, 'unexpected tool_use_id'],
    ['/v1/messages', { messages: [user, call, user], max_tokens: 1 }, 'no tool_result'],
    ['/v1/messages', { messages: [user], max_tokens: 2000, thinking }, 'budget_tokens'],
    ['/v1/messages', { messages: [user], max_tokens: 1, tool_choice: { type: 'any' } }, 'tools'],
    ['/v1/chat/completions', { messages: [user, { role: 'tool' }] }, 'preceding tool call'],
    ['/v1/chat/completions', { messages: [user, chatCall, user] }, 'have no answer'],
    ['/v1/chat/completions', { messages: [user, chatCall] }, 'the last tool calls'],
    ['/v1/chat/completions', { messages: [user], tool_choice: 'auto' }, 'tools are specified'],
    [
      '/v1/chat/completions',
      { messages: [user], stream_options: { include_usage: true } },
      'stream',
    ],
    ['/v1/responses', { input: [] }, 'input'],
    ['/v1/responses', { input: [{ type: 'function_call_output', call_id: 'x' }] }, 'No tool call'],
    ['/v1/responses', { input: [{ type: 'function_call', call_id: 'x' }] }, 'No tool output'],
    ['/v1/messages/count_tokens', { messages: [] }, 'messages'],
  ])('400: %s %j', async (path, body, reason) => {
    const { status, text } = await send(upstream.url, path, { model: 'm', ...body })
    expect({ status, text }).toEqual({ status: 400, text: expect.stringContaining(reason) })
  })
  test('400: no model, and a body that is not JSON', async () => {
    expect((await send(upstream.url, '/v1/responses', { input: 'a' })).status).toBe(400)
    expect((await send(upstream.url, '/v1/messages', '{')).status).toBe(400)
  })
})

test('a count equals the input tokens that the usage of the same body reports', async () => {
  const body = {
    model: 'm',
    system: 'Be brief.',
    messages: [{ role: 'user', content: 'A question' }],
  }
  const counted = await send(upstream.url, '/v1/messages/count_tokens', body)
  const answer = await send(upstream.url, '/v1/messages', { ...body, max_tokens: 9 })
  expect(JSON.parse(counted.text)).toEqual({ input_tokens: 5 })
  expect(understand(answer, messages).usage).toMatchObject({ input_tokens: 5 })
})

test('tokenize answers in the form of llama.cpp and in that of vLLM', async () => {
  const tokenize = async (body: object) =>
    JSON.parse((await send(upstream.url, '/tokenize', body)).text)
  expect(await tokenize({ content: 'abcdefghi' })).toEqual({ tokens: [0, 1, 2] })
  const pieces = await tokenize({ content: 'abcde', with_pieces: true })
  expect(pieces.tokens).toEqual([
    { id: 0, piece: 'abcd' },
    { id: 1, piece: 'e' },
  ])
  expect(await tokenize({ prompt: 'abcde' })).toMatchObject({ count: 2, tokens: [0, 1] })
  const conversation = { messages: [{ role: 'user', content: 'Hi' }] }
  const { prompt } = JSON.parse((await send(upstream.url, '/apply-template', conversation)).text)
  expect(prompt).toBe('<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n')
})

test('the list of models has the form of the vendor that the headers name', async () => {
  const plain = JSON.parse((await send(upstream.url, '/v1/models')).text)
  expect(plain).toMatchObject({ object: 'list', data: [{ object: 'model' }, {}, {}, {}] })
  const headers = { 'anthropic-version': '2023-06-01' }
  const anthropic = await send(upstream.url, '/v1/models?limit=1000', undefined, { headers })
  expect(JSON.parse(anthropic.text)).toMatchObject({
    has_more: false,
    data: [{ type: 'model' }, {}, {}, {}],
  })
  expect((await send(upstream.url, '/v1/nothing')).status).toBe(404)
})

test('as a process it reports its address and exits with its parent', async () => {
  const entry = fileURLToPath(new URL('main.ts', import.meta.url))
  const child = fork(entry, { execArgv: [], stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const [url] = (await once(child, 'message')) as [string]
  expect((await ask(url, chat, 'Hi')).status).toBe(200)
  child.disconnect()
  expect(await once(child, 'exit')).toEqual([0, null])
})
