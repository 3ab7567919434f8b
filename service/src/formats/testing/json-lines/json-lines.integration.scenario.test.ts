import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import { createChatCompletion } from '@gatehouse/contract/chat-completion'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { createMessage } from '@gatehouse/contract/message'
import { createResponse } from '@gatehouse/contract/response'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import type { House } from '#assemble.ts'
import { operator } from '#audit/event.ts'
import { grantCredits } from '#credits/payments/payments.ts'
import { listFormats, upstreamFormats } from '#formats/formats.ts'
import { createInference } from '#inference/create-inference.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

import { jsonLinesFormat } from './json-lines-format.ts'

// A format that only upstreams speak is a folder and one entry in the registry: nothing else in the service
// knows json_lines, and callers of all three formats reach it.

const formats = listFormats(...upstreamFormats.values(), jsonLinesFormat)

type Received = { url: string; headers: IncomingHttpHeaders; body: unknown }

/** Answers every request with the same lines. */
async function startUpstream({ status = 200, lines }: { status?: number; lines: object[] }) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ url: request.url ?? '', headers: request.headers, body: JSON.parse(body) })
      response.writeHead(status, { 'content-type': 'application/x-ndjson' })
      response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v9`, received }
}

async function writeCatalogue(base_url: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-json-lines-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'models.json')
  const catalogue = {
    upstreams: { only: { base_url, formats: ['json_lines'], key: { env: 'LINES_KEY' } } },
    models: [
      {
        id: 'm',
        context_tokens: 1000,
        max_output_tokens: 100,
        prices: { input: '1', output: '2' },
        upstreams: [{ upstream: 'only', model: 'large' }],
      },
    ],
  }
  await writeFile(file, JSON.stringify(catalogue))
  return file
}

const noFiles = {
  keep: async () => undefined,
  read: async () => undefined,
  names: async () => [],
  remove: async () => undefined,
}

/** The whole API, whose inference knows one more format. */
async function prepare(answer: { status?: number; lines: object[] }) {
  const upstream = await startUpstream(answer)
  const modelsFile = await writeCatalogue(upstream.url)
  const withJsonLines = (house: House): House => {
    const { now, log, metrics, credits, events, access, limits, policies, moderation } = house
    const inference = createInference({
      formats,
      modelsFile,
      environment: { LINES_KEY: 'lines-secret' },
      redis: undefined,
      namespace: 'test',
      files: noFiles,
      now,
      steadyNow: now,
      findAddresses: async () => [],
      log,
      metrics,
      credits: credits.calls,
      holdGraceMs: credits.holdGraceMs,
      freeTier: access.freeTier,
      events,
      noteBudgets: async () => undefined,
      limitInferenceCall: limits.limitInferenceCall,
      openQuestions: limits.openQuestions,
      engine: policies.engine,
      moderation: moderation.current,
      local: moderation.local,
      askGuardrail: moderation.askGuardrail,
      guardrailsOf: () => [],
    })
    onTestFinished(inference.stop)
    return { ...house, inference }
  }
  const api = await createTestApi({ change: withJsonLines })
  await waitUntil(api.house.policies.areKnown)
  const { value } = await createProjectKey(api.house, api.organization)
  const gift = { id: 'enough', amount: 1_000_000n }
  await grantCredits(api.organization.organizationId, gift, { ...api.house, by: operator })
  const call = (endpoint: Endpoint, stream: boolean) =>
    api.app.inject({
      method: 'POST',
      url: endpoint.path,
      headers: { authorization: `Bearer ${value}`, 'openai-beta': 'x', 'anthropic-beta': 'x' },
      payload: { model: 'm', stream, ...bodies[endpoint.id] },
    })
  return { upstream, call }
}

const bodies: Record<string, object> = {
  createMessage: {
    max_tokens: 7,
    system: 'Be brief.',
    messages: [{ role: 'user', content: 'Hello' }],
  },
  createResponse: { max_output_tokens: 7, instructions: 'Be brief.', input: 'Hello' },
  createChatCompletion: {
    max_tokens: 7,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello' },
    ],
  },
}

const answer = [
  { begin: { id: 'a1' } },
  { text: 'Good day.' },
  { tool: { id: 't1', name: 'look', input: { at: 'sky' } } },
  { end: { why: 'tool' }, counts: { read: 11, written: 5 } },
]

/** 11 tokens at one dollar and 5 at two dollars per million; one credit is a millionth of a dollar. */
const receipt = { estimated_credits_used: 21, estimated_cost_usd: 0.000021 }

/** What each caller gets of the answer above: the plain body, and words that its stream must have. */
const expected = [
  {
    endpoint: createMessage,
    body: {
      type: 'message',
      content: [
        { type: 'text', text: 'Good day.' },
        { type: 'tool_use', id: 't1', name: 'look', input: { at: 'sky' } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 11, output_tokens: 5 },
    },
    streamed: ['"text_delta","text":"Good day."', '"input_json_delta"', 'event: message_stop'],
  },
  {
    endpoint: createResponse,
    body: {
      object: 'response',
      status: 'completed',
      output: [
        { type: 'message', content: [{ type: 'output_text', text: 'Good day.' }] },
        { type: 'function_call', call_id: 't1', name: 'look', arguments: '{"at":"sky"}' },
      ],
      usage: { input_tokens: 11, output_tokens: 5 },
    },
    streamed: ['"delta":"Good day."', 'function_call_arguments.done', 'event: response.completed'],
  },
  {
    endpoint: createChatCompletion,
    body: {
      object: 'chat.completion',
      choices: [
        {
          message: {
            content: 'Good day.',
            tool_calls: [{ id: 't1', function: { name: 'look', arguments: '{"at":"sky"}' } }],
          },
          finish_reason: 'tool_calls',
        },
      ],
      usage: { prompt_tokens: 11, completion_tokens: 5 },
    },
    streamed: ['"content":"Good day."', '"finish_reason":"tool_calls"', 'data: [DONE]'],
  },
]

test.each(expected)(
  '$endpoint.id: plain and streamed answers are rebuilt and charged',
  async (caller) => {
    const { call } = await prepare({ lines: answer })
    const plain = await call(caller.endpoint, false)
    expect([plain.statusCode, plain.json()]).toMatchObject([200, { ...caller.body, ...receipt }])
    const stream = await call(caller.endpoint, true)
    expect(stream.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    for (const words of [...caller.streamed, '"estimated_credits_used":21']) {
      expect(stream.body).toContain(words)
    }
    expect(stream.body).not.toContain('"begin"')
  },
)

test.each(expected)('$endpoint.id: the upstream gets its own format', async (caller) => {
  const { call, upstream } = await prepare({ lines: answer })
  await call(caller.endpoint, true)
  expect(upstream.received).toHaveLength(1)
  const [{ url, headers, body }] = upstream.received as [Received]
  expect(url).toBe('/v9/models/large:generate?stream=lines')
  expect(body).toEqual({
    limit: 7,
    lines: [
      { from: 'system', text: 'Be brief.' },
      { from: 'user', text: 'Hello' },
    ],
  })
  expect(headers).toMatchObject({
    'x-lines-key': 'lines-secret',
    'x-lines-version': '1',
    accept: 'application/x-ndjson',
  })
  const foreign = ['authorization', 'x-api-key', 'openai-beta', 'anthropic-beta']
  expect(foreign.filter((name) => name in headers)).toEqual([])
})

test.each(expected)('$endpoint.id: a refusal is quoted in the caller’s dialect', async (caller) => {
  const { call } = await prepare({ status: 400, lines: [{ problem: 'Too many lines.' }] })
  const response = await call(caller.endpoint, true)
  expect(response.statusCode).toBe(400)
  expect(response.body).toContain('"Too many lines."')
  expect(response.body).not.toContain('"problem"')
})

test.each(expected)('$endpoint.id: a failure in mid-stream ends the stream', async (caller) => {
  const lines = [...answer.slice(0, 2), { problem: 'Out of ink.' }]
  const { call } = await prepare({ lines })
  const { statusCode, body } = await call(caller.endpoint, true)
  expect(statusCode).toBe(200)
  expect(body).toContain('The model provider failed: Out of ink.')
})

test('usage that is missing is counted here', async () => {
  const { call } = await prepare({ lines: [...answer.slice(0, 3), { end: { why: 'tool' } }] })
  const { usage } = (await call(createMessage, false)).json<{ usage: Record<string, number> }>()
  expect(usage['input_tokens']).toBeGreaterThan(0)
  expect(usage['output_tokens']).toBeGreaterThan(0)
})
