import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { createClient } from '@gatehouse/contract/client'
import { readLimits } from '@gatehouse/contract/limits'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'

import { ask, begin, type Target } from './support/streams/call.ts'
import { catalogueOf } from './support/streams/models.ts'
import { useStack } from './support/use-stack.ts'

// Misbehaving upstreams: they omit usage, repeat our key, never end or send too much. Each test sets the behaviour
// before it calls.

type Behaviour = (response: ServerResponse, call: number) => void

let behaviour: Behaviour = () => undefined
let calls = 0
const upstream = createServer((request, response) => {
  const call = ++calls
  request.resume().once('end', () => behaviour(response, call))
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
afterAll(() => {
  upstream.closeAllConnections()
  upstream.close()
})
beforeEach(() => {
  calls = 0
})

const secret = 'the-key-of-the-scripted-upstream'
const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
const stack = useStack({
  // Answers without usage are estimated, on a busy machine generously, so the free tier could run out of tokens.
  paidUsd: '1000',
  models: () =>
    catalogueOf({
      plain: [{ url, format: 'chat' }],
      comments: [{ url, format: 'chat' }],
      refuses: [{ url, format: 'chat' }],
      missing: [{ url, format: 'chat' }],
      trickles: [{ url, format: 'chat', connections: 2, total_timeout_ms: 1500 }],
    }),
})
const target = (): Target => {
  const { base_url, project_key } = stack().description
  return { baseUrl: base_url, credential: project_key }
}
const chat = (model: string, isStreamed = false) =>
  ask(target(), { format: 'chat', model, isStreamed })

const chunk = (delta: object, rest: object = {}) => {
  const choices = [{ index: 0, delta, finish_reason: null, ...rest }]
  return `data: ${JSON.stringify({ id: 'c', model: 'm', choices })}\n\n`
}
const end = `${chunk({}, { finish_reason: 'stop' })}data: [DONE]\n\n`
const open = (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'text/event-stream' })
type Body = {
  usage: { prompt_tokens: number; completion_tokens: number }
  estimated_credits_used: number
}

test('an answer without usage is counted by the gateway, and the caller receives the count', async () => {
  behaviour = (response) => open(response).end(chunk({ content: 'word '.repeat(1000) }) + end)
  const { usage, estimated_credits_used } = JSON.parse((await chat('plain')).text) as Body
  const { prompt_tokens, completion_tokens } = usage
  expect(completion_tokens).toBeGreaterThan(900)
  expect(prompt_tokens).toBeGreaterThan(0)
  expect(estimated_credits_used).toBe(prompt_tokens * 3 + completion_tokens * 15)
})

test('a comment does not begin an answer: a failure after it is retried', async () => {
  behaviour = (response, call) => {
    open(response).write(': PROCESSING\n\n')
    if (call === 1) setTimeout(() => response.destroy(), 20)
    else response.end(chunk({ content: 'Hello' }) + end)
  }
  expect(await chat('comments')).toMatchObject({ status: 200 })
  expect(calls).toBe(2)
})

test('the upstream key is removed from a refusal that repeats it', async () => {
  const message = `Incorrect API key provided: ${secret}.`
  behaviour = (response) =>
    response
      .writeHead(400, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message, type: 'invalid_request_error' } }))
  const refused = await chat('refuses')
  expect(refused.status).toBe(400)
  expect(refused.text).toContain('Incorrect API key provided: [removed].')
  behaviour = (response) => {
    const error = JSON.stringify({ error: { message, type: 'server_error' } })
    open(response).end(`${chunk({ content: 'Hello' })}data: ${error}\n\n`)
  }
  const streamed = await chat('refuses', true)
  expect(streamed.text).toContain('"error"')
  expect(refused.text + streamed.text).not.toContain(secret)
})

test('repeated 404s do not take an upstream out of service', async () => {
  behaviour = (response, call) => {
    if (call <= 8) response.writeHead(404).end('{}')
    else open(response).end(chunk({ content: 'Hello' }) + end)
  }
  for (let call = 1; call <= 8; call++) expect((await chat('missing')).status).toBe(502)
  expect((await chat('missing')).status).toBe(200)
})

test('an upstream that keeps sending after its answer does not keep its connection', async () => {
  behaviour = (response) => {
    open(response).write(chunk({ content: 'Hello' }) + end)
    const timer = setInterval(() => response.write(': and another thing\n\n'), 50)
    response.once('close', () => clearInterval(timer))
  }
  for (let call = 1; call <= 2; call++) expect((await chat('trickles')).status).toBe(200)
  await sleep(1500)
  expect((await chat('trickles')).status).toBe(200)
})

const mebibyte = 'x'.repeat(1024 * 1024)

test.each([
  ['text, which has to be judged', { content: mebibyte }, [503, 'too large to be judged']],
  ['sound', { audio: { id: 'a', data: mebibyte } }, [502, 'provider is too large']],
] as const)('a plain answer with too much %s ends with an error', async (_, delta, expected) => {
  const endless = chunk(delta)
  behaviour = (response) => {
    open(response)
    const write = () => {
      while (!response.destroyed && response.write(endless));
    }
    response.on('drain', write)
    write()
  }
  const refused = await chat('plain')
  const [status, reason] = expected
  expect([refused.status, refused.text]).toEqual([status, expect.stringContaining(reason)])
  // The process survives.
  behaviour = (response) => open(response).end(chunk({ content: 'Hello' }) + end)
  expect((await chat('plain')).status).toBe(200)
})

test('incomplete tool arguments are an upstream error, not an internal one', async () => {
  const call = { index: 0, id: 'c1', function: { name: 'f', arguments: '{"a":' } }
  behaviour = (response) => open(response).end(chunk({ tool_calls: [call] }) + end)
  const answer = await ask(target(), { format: 'messages', model: 'plain', isStreamed: false })
  expect([answer.status, answer.text]).toEqual([502, expect.stringContaining('upstream_error')])
})

test('numbers beyond the precision of a double pass through unchanged', async () => {
  const input = '{"id":1234567890123456789}'
  const call = { index: 0, id: 'c1', function: { name: 'f', arguments: input } }
  behaviour = (response) => open(response).end(chunk({ tool_calls: [call] }) + end)
  const answer = await ask(target(), { format: 'messages', model: 'plain', isStreamed: false })
  expect(answer.text).toContain(input)
})

test('callers who hang up free their slots, even when their answers are too long to count locally', async () => {
  const long = chunk({ content: 'a1B2 '.repeat(30_000) })
  behaviour = (response) => void open(response).write(long)
  const running = Array.from({ length: 4 }, () =>
    begin(target(), { format: 'chat', model: 'plain' }),
  )
  await vi.waitFor(() => expect(calls).toBe(4), { timeout: 10_000 })
  await sleep(300)
  for (const each of running) each.hangUp()
  const { base_url, admin_key } = stack().description
  const client = createClient({ baseUrl: base_url, credential: admin_key })
  await vi.waitFor(
    async () => {
      const { organization } = await client.call(readLimits, {})
      expect(organization.concurrent_requests).toMatchObject({ used: 0 })
    },
    { timeout: 15_000, interval: 250 },
  )
})
