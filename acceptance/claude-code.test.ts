import { randomUUID } from 'node:crypto'

import Anthropic, { BadRequestError } from '@anthropic-ai/sdk'
import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { createTenants } from '@gatehouse/tools/start-stack'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { forgetRecords, recordedBy, toolNamesIn } from './support/codex-upstream.ts'
import { beginRaw, eventsOf, promptFor } from './support/stream-call.ts'
import { canary, useStack } from './support/use-stack.ts'

// What Claude Code sends and needs, request by request.

const stack = useStack()
let key = ''
beforeAll(async () => {
  const [tenant] = await createTenants(stack().service, 1)
  key = tenant?.project_key ?? ''
})
const baseUrl = () => stack().description.base_url
const upstreamUrl = () => stack().description.upstream_url
beforeEach(() => forgetRecords(upstreamUrl()))

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

/** A session's request with everything that has no place in an older client. */
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

/** Sends a session's request as Claude Code does; `credentials` are its own headers. */
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
  test('200: every member reaches the upstream as it was sent, in its order', async () => {
    const body = { ...sessionBody({ text: 'Done.' }), stream: true }
    const { status, text } = await send(bearer(), { body }).heard
    expect([status, text]).toEqual([200, expect.stringContaining('message_stop')])
    const record = await onlyRecord()
    expect(record.path).toMatch(/^\/v1\/messages(\?beta=true)?$/)
    expect(record.body).toEqual(body)
    expect(JSON.stringify(record.body['system'])).toBe(JSON.stringify(body.system))
    expect(JSON.stringify(record.body['tools'])).toBe(JSON.stringify(body.tools))
  })

  test('200: the upstream sees version and betas, its own key, and no credential of ours', async () => {
    await send({ ...bearer(), 'x-api-key': key }).heard
    const { headers } = await onlyRecord()
    expect(headers['anthropic-version']).toBe('2023-06-01')
    expect(headers['anthropic-beta']).toBe(betas)
    expect(headers['x-api-key']).toBe('the-key-of-the-scripted-upstream')
    expect(headers).not.toHaveProperty('authorization')
    expect(JSON.stringify(headers)).not.toContain(key)
  })

  test('200: flagged_categories is for the gateway and stays here', async () => {
    const body = { flagged_categories: ['hate'], tools: undefined, tool_choice: undefined }
    expect((await send(bearer(), { body }).heard).status).toBe(200)
    expect((await onlyRecord()).body).not.toHaveProperty('flagged_categories')
  })

  test.each(['gpt-scripted', 'chat-scripted'])(
    '200: a session is translated for %s, whatever members it has',
    async (model) => {
      const body = { ...sessionBody({ text: 'Done.' }), model, stream: true }
      const { status, text } = await send(bearer(), { body }).heard
      expect([status, text]).toEqual([200, expect.stringContaining('message_stop')])
      const record = await onlyRecord()
      expect(toolNamesIn(record)).toEqual(['Read', 'Bash'])
      const sent = JSON.stringify(record.body)
      const places = body.system.map((block) => sent.indexOf(block.text))
      expect(Math.min(...places)).toBeGreaterThan(0)
      expect(places).toEqual(places.toSorted((left, right) => left - right))
    },
  )

  test.each([
    ['Authorization', () => bearer()],
    ['x-api-key', () => ({ 'x-api-key': key })],
    ['both', () => ({ ...bearer(), 'x-api-key': key })],
    ['both, of which Authorization counts', () => ({ ...bearer(), 'x-api-key': 'sk-ant-other' })],
  ])('200 with %s', async (_, credentials) => {
    // An empty header would be a credential too.
    const { status, text } = await sendBare(credentials())
    expect([status, text]).toEqual([200, expect.stringContaining('Hello from the scripted')])
  })

  test('401 in the shape of Anthropic without a valid credential, and no upstream is called', async () => {
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

/** Without any credential but the given ones. */
async function sendBare(credentials: Record<string, string>) {
  const response = await fetch(`${baseUrl()}/v1/messages?beta=true`, {
    method: 'POST',
    headers: { ...clientHeaders, ...credentials, 'content-type': 'application/json' },
    body: JSON.stringify(sessionBody({})),
  })
  return { status: response.status, text: await response.text() }
}

describe('a stream', () => {
  test('arrives piece by piece, while the upstream still writes', async () => {
    const paceMs = 150
    const script = { text: 'one two three four five six', paceMs }
    const body = { ...sessionBody(script), thinking: { type: 'disabled' }, stream: true }
    const { status, headers, chunks, text } = await send(bearer(), { body }).heard
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(headers['content-encoding']).toBeUndefined()
    expect(headers['x-accel-buffering']).toBe('no')
    const arrivals = chunks.filter((chunk) => chunk.text.includes('text_delta'))
    expect(arrivals.length).toBeGreaterThanOrEqual(5)
    const [first, last] = [arrivals[0]?.atMs ?? 0, arrivals.at(-1)?.atMs ?? 0]
    expect(last - first).toBeGreaterThan(3 * paceMs)
    const types = eventsOf(text).map(({ event }) => event)
    expect(types[0]).toBe('message_start')
    expect(types.at(-1)).toBe('message_stop')
  })

  test('has thinking with its signature, a tool call and its stop reason, as the SDK reads them', async () => {
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
    // The conversation goes on with what it was given, to the letter.
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

  test.each([{ stream: true }, {}])('keeps the words of the upstream: %o', async (way) => {
    const body = { ...sessionBody(refusal), ...way }
    const { status, text } = await send(bearer(), { body }).heard
    expect([status, text]).toEqual([400, expect.any(String)])
    expect(JSON.parse(text)).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: wording },
      request_id: expect.any(String) as string,
    })
  })

  test('is what the SDK takes it for', async () => {
    const client = new Anthropic({ baseURL: baseUrl(), apiKey: key, maxRetries: 0 })
    const stream = client.messages.stream(sessionBody(refusal) as never)
    const error = await stream.finalMessage().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(BadRequestError)
    expect((error as BadRequestError).type).toBe('invalid_request_error')
    expect((error as BadRequestError).requestID).toMatch(/^req_/)
    expect((error as BadRequestError).error).toMatchObject({ error: { message: wording } })
  })

  test('overloaded is 529, as the client knows it', async () => {
    const body = sessionBody({ error: { status: 529, message: 'Overloaded' } })
    const { status, text } = await send(bearer(), { body }).heard
    expect([status, text]).toEqual([529, expect.any(String)])
    expect(JSON.parse(text)).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } })
  })

  test('400 for an unknown model, and no upstream is called', async () => {
    const { status, text } = await send(bearer(), { body: { model: 'claude-nobody' } }).heard
    expect([status, text]).toEqual([400, expect.stringContaining('claude-nobody')])
    const error = { type: 'invalid_request_error', code: 'model_not_found' }
    expect(JSON.parse(text)).toMatchObject({ type: 'error', error })
    expect(await recordedBy(upstreamUrl())).toEqual([])
  })
})

describe('the counter', () => {
  /** What Claude Code counts: a session without what only a generation needs. */
  const counted = () => {
    const { max_tokens: _, temperature: __, ...body } = sessionBody({})
    return body
  }

  test('200: a session is counted, whatever members it has', async () => {
    const { status, text } = await send(bearer(), {
      ...{ path: '/v1/messages/count_tokens?beta=true', body: counted() },
      headers: { 'anthropic-beta': `${betas},token-counting-2024-11-01` },
    }).heard
    expect([status, text]).toEqual([200, expect.any(String)])
    expect(JSON.parse(text)).toEqual({ input_tokens: expect.any(Number) as number })
    expect((JSON.parse(text) as { input_tokens: number }).input_tokens).toBeGreaterThan(20)
    const { path, headers } = await onlyRecord()
    expect(path).toBe('/v1/messages/count_tokens')
    expect(headers['x-api-key']).toBe('the-key-of-the-scripted-upstream')
    expect(JSON.stringify(headers)).not.toContain(key)
  })

  test('200 by the SDK, and more text is more tokens', async () => {
    const client = new Anthropic({ baseURL: baseUrl(), apiKey: key, maxRetries: 0 })
    const count = async (text: string) => {
      const messages = [{ role: 'user' as const, content: text }]
      const asked = { ...counted(), messages } as never
      return (await client.messages.countTokens(asked)).input_tokens
    }
    const short = await count('Hello.')
    expect(await count('Hello again and again. '.repeat(100))).toBeGreaterThan(short + 100)
  })
})

describe('the surroundings', () => {
  test('200 without a redirect and within 3 s: GET /v1/models?limit=1000', async () => {
    const response = await fetch(`${baseUrl()}/v1/models?limit=1000`, {
      headers: { ...clientHeaders, ...bearer() },
      redirect: 'error',
      signal: AbortSignal.timeout(3000),
    })
    expect(response.status).toBe(200)
    const { data } = (await response.json()) as { data: { id: string; display_name: string }[] }
    expect(data.find(({ id }) => id === 'claude-scripted')?.display_name).toBe(
      'Scripted, speaks Messages',
    )
  })

  test.each(['/', '/?probe=1'])('200 without a credential or a redirect: HEAD %s', async (path) => {
    const answer = await fetch(`${baseUrl()}${path}`, {
      ...{ method: 'HEAD', redirect: 'error', headers: clientHeaders },
      signal: AbortSignal.timeout(3000),
    })
    expect(answer.status).toBe(200)
    expect(await answer.text()).toBe('')
  })
})
