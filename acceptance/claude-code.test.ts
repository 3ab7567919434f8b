import { randomUUID } from 'node:crypto'

import Anthropic, { BadRequestError } from '@anthropic-ai/sdk'
import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { stackModels } from '@gatehouse/tools/stack-models'
import { createTenants } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { clearRecords, recordedBy, toolNamesIn } from './support/codex/upstream.ts'
import { beginRaw, eventsOf, promptFor } from './support/streams/call.ts'
import { startLockstep } from './support/streams/lockstep.ts'
import { catalogueOf, passUnknown } from './support/streams/models.ts'
import { windowWord, wordsScored } from './support/streams/windows.ts'
import { canary, useStack } from './support/use-stack.ts'

// What Claude Code sends and needs, request by request.

const pieces = 14
const lockstep = await startLockstep(pieces)
afterAll(lockstep.stop)

const stack = useStack({
  models: (urls) => {
    const usual = stackModels(urls)
    const { upstreams, models } = catalogueOf({ lockstep: [{ url: lockstep.url }] })
    const priced = usual.models.map((model) => ({
      ...model,
      prices: { ...model.prices, cache_write_1h: '6' },
    }))
    return {
      upstreams: passUnknown({ ...usual.upstreams, ...upstreams }),
      models: [...priced, ...models],
    }
  },
})
let key = ''
beforeAll(async () => {
  const [tenant] = await createTenants(stack().service, 1)
  key = tenant?.project_key ?? ''
})
const baseUrl = () => stack().description.base_url
const upstreamUrl = () => stack().description.upstream_url
beforeEach(() => clearRecords(upstreamUrl()))

const betas = 'claude-code-20250219,interleaved-thinking-2025-05-14,not-yet-invented-2031-01-01'

const clientHeaders = {
  'anthropic-version': '2023-06-01',
  'anthropic-beta': betas,
  'anthropic-dangerous-direct-browser-access': 'true',
  'x-claude-code-session-id': randomUUID(),
  'x-claude-code-agent-id': `agent-${canary}`,
  'x-claude-code-parent-agent-id': 'main',
  'user-agent': 'claude-cli/2.1.0 (external, cli)',
  'x-app': 'cli',
  'x-stainless-lang': 'js',
  'x-stainless-package-version': '0.95.0',
  'x-stainless-runtime': 'node',
  'x-stainless-retry-count': '0',
  'x-stainless-timeout': '600',
}

const attribution = 'x-anthropic-billing-header: cc_version=2.1.0; cc_entrypoint=cli;'

/** A request of a session, with members that older clients do not send. */
const sessionBody = (script: Script) => ({
  model: 'claude-scripted',
  max_tokens: 32_000,
  system: [
    { type: 'text', text: attribution },
    { type: 'text', text: 'You are a coding agent.', cache_control: { type: 'ephemeral' } },
    { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } },
  ],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: '<system-reminder>The date is known.</system-reminder>' },
        { type: 'text', text: promptFor(script), cache_control: { type: 'ephemeral' } },
      ],
    },
  ],
  tools: [
    {
      name: 'Read',
      description: 'Reads a file.',
      strict: true,
      input_schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: { file_path: { type: 'string' } },
        required: ['file_path'],
        additionalProperties: false,
      },
      eager_input_streaming: true,
    },
    { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
    {
      name: 'Bash',
      description: 'Runs a command.',
      defer_loading: true,
      input_schema: { type: 'object', properties: { command: { type: 'string' } } },
      cache_control: { type: 'ephemeral' },
    },
  ],
  tool_choice: { type: 'auto' },
  thinking: { type: 'adaptive' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  output_config: { effort: 'high', not_yet_invented: ['a'] },
  metadata: { user_id: `{"device_id":"d1","session_id":"${canary}"}` },
  temperature: 1,
  not_yet_invented: { nested: [null, 1.5, 'ü', { deep: true }] },
})

type Sent = { body?: object; headers?: Record<string, string>; path?: string }

/** Sends a session's request as Claude Code does; `credentials` are its credential headers. */
const send = (credentials: Record<string, string>, { body = {}, headers, path }: Sent = {}) =>
  beginRaw(
    { baseUrl: baseUrl(), credential: '' },
    {
      path: path ?? '/v1/messages?beta=true',
      payload: JSON.stringify({ ...sessionBody({}), ...body }),
      headers: { ...clientHeaders, ...headers, ...credentials },
    },
  )

const bearer = () => ({ authorization: `Bearer ${key}` })

async function onlyRecord() {
  const records = await recordedBy(upstreamUrl())
  expect(records).toHaveLength(1)
  return records[0] ?? expect.fail('The upstream was not called.')
}

describe('a message', () => {
  test('200: every member reaches the upstream unchanged and in order', async () => {
    const body = { ...sessionBody({ text: 'Done.' }), stream: true }
    const { status, text } = await send(bearer(), { body }).answer
    expect([status, text]).toEqual([200, expect.stringContaining('message_stop')])
    const record = await onlyRecord()
    expect(record.path).toMatch(/^\/v1\/messages(\?beta=true)?$/)
    expect(record.body).toEqual(body)
    expect(JSON.stringify(record.body['system'])).toBe(JSON.stringify(body.system))
    expect(JSON.stringify(record.body['tools'])).toBe(JSON.stringify(body.tools))
  })

  test('200: the upstream receives version and betas, its own key, and no credential of the caller', async () => {
    await send({ ...bearer(), 'x-api-key': key }).answer
    const { headers } = await onlyRecord()
    expect(headers['anthropic-version']).toBe('2023-06-01')
    expect(headers['anthropic-beta']).toBe(betas)
    expect(headers['x-api-key']).toBe('the-key-of-the-scripted-upstream')
    expect(headers).not.toHaveProperty('authorization')
    expect(JSON.stringify(headers)).not.toContain(key)
  })

  test('200: flagged_categories is for the gateway and is not forwarded', async () => {
    const body = { flagged_categories: ['hate'], tools: undefined, tool_choice: undefined }
    expect((await send(bearer(), { body }).answer).status).toBe(200)
    expect((await onlyRecord()).body).not.toHaveProperty('flagged_categories')
  })

  test.each(['gpt-scripted', 'chat-scripted'])(
    '200: a session with unknown members is translated for %s',
    async (model) => {
      const body = { ...sessionBody({ text: 'Done.' }), model, stream: true }
      const { status, text } = await send(bearer(), { body }).answer
      expect([status, text]).toEqual([200, expect.stringContaining('message_stop')])
      const record = await onlyRecord()
      expect(toolNamesIn(record)).toEqual(['Read', 'Bash'])
      const sent = JSON.stringify(record.body)
      const positions = body.system.map((block) => sent.indexOf(block.text))
      expect(Math.min(...positions)).toBeGreaterThan(0)
      expect(positions).toEqual(positions.toSorted((left, right) => left - right))
    },
  )

  test.each([
    ['Authorization', () => bearer()],
    ['x-api-key', () => ({ 'x-api-key': key })],
    ['both', () => ({ ...bearer(), 'x-api-key': key })],
    ['both, where Authorization wins', () => ({ ...bearer(), 'x-api-key': 'sk-ant-other' })],
  ])('200 with %s', async (_, credentials) => {
    // `send` adds an Authorization header, and even an empty one counts as a credential.
    const { status, text } = await sendBare(credentials())
    expect([status, text]).toEqual([200, expect.stringContaining('Hello from the scripted')])
  })

  test('401 in the error format of Anthropic without a valid credential, and no upstream is called', async () => {
    for (const credentials of [{}, { 'x-api-key': 'sk-ant-other' }]) {
      const { status, text } = await sendBare(credentials)
      expect([status, text]).toEqual([401, expect.any(String)])
      expect(JSON.parse(text)).toMatchObject({
        type: 'error',
        error: { type: 'authentication_error', message: expect.any(String) as string },
        request_id: expect.stringMatching(/^req_/) as string,
      })
    }
    expect(await recordedBy(upstreamUrl())).toEqual([])
  })
})

/** Sends a session's request with no other credential headers. */
async function sendBare(credentials: Record<string, string>) {
  const response = await fetch(`${baseUrl()}/v1/messages?beta=true`, {
    method: 'POST',
    headers: { ...clientHeaders, ...credentials, 'content-type': 'application/json' },
    body: JSON.stringify(sessionBody({})),
  })
  return { status: response.status, text: await response.text() }
}

describe('a stream', () => {
  test('arrives window by window, each before the upstream goes on', async () => {
    const text = Array.from({ length: pieces }, () => windowWord).join(' ')
    const session = { ...sessionBody({ text }), model: 'lockstep', stream: true }
    const call = send(bearer(), { body: { ...session, thinking: { type: 'disabled' } } })
    const received = () => call.chunks.map((chunk) => chunk.text).join('')
    for (let piece = 1; piece <= pieces; piece++) {
      lockstep.sendNext()
      await expect
        .poll(() => received().match(/text_delta/g)?.length ?? 0, { interval: 1, timeout: 60_000 })
        .toBe(piece === pieces ? pieces : wordsScored(piece))
    }
    const { status, headers, text: streamed } = await call.answer
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(headers['content-encoding']).toBeUndefined()
    expect(headers['x-accel-buffering']).toBe('no')
    const types = eventsOf(streamed).map(({ event }) => event)
    expect(types[0]).toBe('message_start')
    expect(types.at(-1)).toBe('message_stop')
  })

  test('contains thinking with its signature, a tool call and the stop reason, as the SDK parses them', async () => {
    const client = new Anthropic({ baseURL: baseUrl(), authToken: key, apiKey: null })
    const toolCalls = [{ name: 'Read', arguments: { file_path: '/etc/hosts' } }]
    const script = { thinking: 'It wants a file.', toolCalls }
    const stream = client.beta.messages.stream(
      { ...sessionBody(script), betas: ['claude-code-20250219'] } as never,
      { headers: clientHeaders },
    )
    const message = await stream.finalMessage()
    expect(message.stop_reason).toBe('tool_use')
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'It wants a file.', signature: expect.stringMatching(/./) },
      { type: 'tool_use', name: 'Read', input: { file_path: '/etc/hosts' } },
    ])
    // The next turn sends the answer back unchanged.
    const [thinking, call] = message.content
    const id = call?.type === 'tool_use' ? call.id : ''
    const history = [
      ...sessionBody(script).messages,
      { role: 'assistant', content: message.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: '127.0.0.1' }] },
    ]
    const next = { ...sessionBody({}), messages: history }
    const following = client.beta.messages.stream(next as never, { headers: clientHeaders })
    expect(await following.finalMessage()).toMatchObject({ stop_reason: 'end_turn' })
    const last = (await recordedBy(upstreamUrl())).at(-1)
    const messages = last?.body['messages'] as { content: unknown[] }[]
    expect(messages[1]?.content[0]).toEqual(thinking)
    expect(messages).toEqual(JSON.parse(JSON.stringify(history)))
  })
})

describe('an error', () => {
  const wording = 'prompt is too long: 250000 tokens > 200000 maximum'
  const refusal = { error: { status: 400, type: 'invalid_request_error', message: wording } }

  test.each([{ stream: true }, {}])('keeps the message of the upstream: %o', async (way) => {
    const body = { ...sessionBody(refusal), ...way }
    const { status, text } = await send(bearer(), { body }).answer
    expect([status, text]).toEqual([400, expect.any(String)])
    expect(JSON.parse(text)).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: wording },
      request_id: expect.any(String) as string,
    })
  })

  test('is thrown by the SDK as the matching class', async () => {
    const client = new Anthropic({ baseURL: baseUrl(), apiKey: key, maxRetries: 0 })
    const stream = client.messages.stream(sessionBody(refusal) as never)
    const error = await stream.finalMessage().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(BadRequestError)
    expect((error as BadRequestError).type).toBe('invalid_request_error')
    expect((error as BadRequestError).requestID).toMatch(/^req_/)
    expect((error as BadRequestError).error).toMatchObject({ error: { message: wording } })
  })

  test('overloaded is 529, which the client retries', async () => {
    const body = sessionBody({ error: { status: 529, message: 'Overloaded' } })
    const { status, text } = await send(bearer(), { body }).answer
    expect([status, text]).toEqual([529, expect.any(String)])
    expect(JSON.parse(text)).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } })
  })

  test('404 for an unknown model, and no upstream is called', async () => {
    const { status, text } = await send(bearer(), { body: { model: 'claude-unknown' } }).answer
    expect([status, text]).toEqual([404, expect.stringContaining('claude-unknown')])
    const error = { type: 'not_found_error', code: 'model_not_found' }
    expect(JSON.parse(text)).toMatchObject({ type: 'error', error })
    expect(await recordedBy(upstreamUrl())).toEqual([])
  })
})

describe('count_tokens', () => {
  /** The body that Claude Code counts: a session without the members that only generation needs. */
  const counted = () => {
    const { max_tokens: _, temperature: __, ...body } = sessionBody({})
    return body
  }

  test('200: a session with unknown members is counted', async () => {
    const { status, text } = await send(bearer(), {
      path: '/v1/messages/count_tokens?beta=true',
      body: counted(),
      headers: { 'anthropic-beta': `${betas},token-counting-2024-11-01` },
    }).answer
    expect([status, text]).toEqual([200, expect.any(String)])
    expect(JSON.parse(text)).toEqual({ input_tokens: expect.any(Number) as number })
    expect((JSON.parse(text) as { input_tokens: number }).input_tokens).toBeGreaterThan(20)
    const { path, headers } = await onlyRecord()
    expect(path).toBe('/v1/messages/count_tokens')
    expect(headers['x-api-key']).toBe('the-key-of-the-scripted-upstream')
    expect(JSON.stringify(headers)).not.toContain(key)
  })

  test('200 with the SDK, and a longer text has more tokens', async () => {
    const client = new Anthropic({ baseURL: baseUrl(), apiKey: key, maxRetries: 0 })
    const count = async (text: string) => {
      const messages = [{ role: 'user' as const, content: text }]
      const request = { ...counted(), messages } as never
      return (await client.messages.countTokens(request)).input_tokens
    }
    const short = await count('Hello.')
    expect(await count('Hello again and again. '.repeat(100))).toBeGreaterThan(short + 100)
  })
})

describe('other requests of the client', () => {
  /** Claude Code waits 3 s for an answer; a bare read of the service takes a few milliseconds. */
  const timesBareRead = 100

  async function timeRead(path: string): Promise<[Response, number]> {
    const startedAt = performance.now()
    const response = await fetch(`${baseUrl()}${path}`, {
      headers: { ...clientHeaders, ...bearer() },
      redirect: 'error',
    })
    return [response, performance.now() - startedAt]
  }

  test(`200 without a redirect, in at most ${timesBareRead} times a bare read: GET /v1/models?limit=1000`, async () => {
    const [, bareMs] = await timeRead('/health/live')
    const [response, tookMs] = await timeRead('/v1/models?limit=1000')
    expect(response.status).toBe(200)
    expect(tookMs / bareMs).toBeLessThan(timesBareRead)
    const { data } = (await response.json()) as { data: { id: string; display_name: string }[] }
    expect(data.find(({ id }) => id === 'claude-scripted')?.display_name).toBe(
      'Scripted, speaks Messages',
    )
  })

  test.each(['/', '/?probe=1'])('200 without a credential or a redirect: HEAD %s', async (path) => {
    const answer = await fetch(`${baseUrl()}${path}`, {
      method: 'HEAD',
      redirect: 'error',
      headers: clientHeaders,
    })
    expect(answer.status).toBe(200)
    expect(await answer.text()).toBe('')
  })
})
