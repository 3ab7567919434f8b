import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import Anthropic from '@anthropic-ai/sdk'
import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import {
  ask,
  begin,
  bodyOf,
  foldedCall,
  formats,
  type RequestOptions,
} from './support/streams/call.ts'
import { expectBrokenStream, expectRefusal } from './support/streams/errors.ts'
import { catalogueOf } from './support/streams/models.ts'
import { textOf } from './support/streams/text.ts'
import { stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// An answer that fails midway ends with an error event, in every format and from every format of an upstream; one
// that fails before it begins is a plain error, even if a stream was requested.

const upstream = await startScriptedUpstream()
afterAll(upstream.stop)
/** Nothing listens at its address. */
const absent = await startScriptedUpstream()
await absent.stop()

/** Answers 200 with JSON where a stream was requested. */
const odd = createServer((request, response) => {
  request.resume()
  const headers = { 'content-type': 'application/json' }
  response.writeHead(200, headers).write('{"id":"msg_1",')
  setTimeout(() => response.end('"type":"message"}'), 50)
})
await new Promise<void>((resolve) => odd.listen(0, '127.0.0.1', resolve))
afterAll(() => void odd.close())
const oddUrl = `http://127.0.0.1:${(odd.address() as AddressInfo).port}`

const settings = { url: upstream.url, idle_timeout_ms: 600 }
const stack = useStack({
  models: () =>
    catalogueOf({
      ...Object.fromEntries(formats.map((format) => [`by-${format}`, [{ ...settings, format }]])),
      absent: [{ url: absent.url }],
      odd: [{ url: oddUrl }],
    }),
})

let tenants: Tenant[] = []
beforeAll(async () => {
  tenants = await createTenants(stack().service, 1)
})
const target = (credential = tenants[0]?.project_key ?? '') => ({
  baseUrl: stack().description.base_url,
  credential,
})

const speech = { tokens: 20, paceMs: 15 }
const faults = {
  'an error event': { ...speech, errorAfter: { pieces: 4 } },
  'an early close': { ...speech, closeAfter: { pieces: 4 } },
  'a malformed frame': { ...speech, malformedAfter: { pieces: 4 } },
  silence: { ...speech, stallAfter: { pieces: 4, ms: 20_000 } },
  'no end': { ...speech, closeAfter: { pieces: 20 } },
} as const satisfies Record<string, Script>

describe.concurrent.each(formats)('a stream of %s', (format) => {
  test.each(formats)(
    'from an upstream of %s ends every failure with an error event',
    async (origin) => {
      const request = { format, model: `by-${origin}` }
      const check = async ([name, script]: [string, Script]) => {
        const answer = await ask(target(), { ...request, script })
        expectBrokenStream(answer, format)
        // Everything sent before the failure has arrived, and nothing of the unfinished frame.
        expect(textOf(answer.text), name).toMatch(/^\w+ \w+ \w+ \w+/)
        expect(answer.text.length).toBeLessThan(50_000)
        const body = foldedCall[format]
        const folded = await ask(target(), { ...request, script, isStreamed: false, body })
        const isSilent = name === 'silence'
        expectRefusal(folded, format, isSilent ? timeout : failure)
      }
      await Promise.all(Object.entries(faults).map(check))
    },
  )
})

test.each(formats)('%s: a frame larger than 8 MiB ends in an error event', async (format) => {
  const script = { ...speech, hugeFrameBytes: 9 * 1024 * 1024 }
  const answer = await ask(target(), { format, model: `by-${format}`, script })
  expectBrokenStream(answer, format)
  expect(textOf(answer.text)).toMatch(/^\w+ \w+ \w+ \w+/)
  expect(answer.text.length).toBeLessThan(50_000)
})

test.each(formats)(
  '%s: frames before an error in the same packet reach the caller',
  async (format) => {
    const words = { text: 'one two three four five six seven eight', coalesce: true }
    const script = { ...words, stallAfter: { pieces: 2, ms: 50 }, errorAfter: { pieces: 6 } }
    const answer = await ask(target(), { format, model: `by-${format}`, script })
    expectBrokenStream(answer, format)
    expect(textOf(answer.text).trim()).toBe('one two three four five six')
  },
)

test('a 200 from the upstream that is not a stream is a 502, and does not affect other calls', async () => {
  for (const format of formats) {
    expectRefusal(await ask(target(), { format, model: 'odd' }), format, failure)
  }
  expect((await ask(target(), { format: 'chat', model: 'by-chat' })).status).toBe(200)
})

const timeout = { status: 504, code: 'upstream_timeout', messagesType: 'timeout_error' }
const failure = { status: 502, code: 'upstream_error', messagesType: 'api_error' }

describe('the official clients', () => {
  const options = () => ({
    baseURL: `${stack().description.base_url}/v1`,
    apiKey: tenants[0]?.project_key ?? '',
    maxRetries: 0,
  })
  const clients = {
    async messages(request: RequestOptions) {
      const client = new Anthropic({ ...options(), baseURL: stack().description.base_url })
      const body = bodyOf(request) as unknown as Anthropic.MessageCreateParamsStreaming
      return client.messages.stream(body).finalMessage()
    },
    async chat(request: RequestOptions) {
      const body = bodyOf(request) as unknown as OpenAI.ChatCompletionCreateParamsStreaming
      return new OpenAI(options()).chat.completions.stream(body).finalChatCompletion()
    },
    async responses(request: RequestOptions) {
      const body = bodyOf(request) as unknown as Parameters<OpenAI['responses']['stream']>[0]
      return new OpenAI(options()).responses.stream(body).finalResponse()
    },
  }

  test.each(formats)('of %s raise when a stream fails', async (format) => {
    const check = async (script: Script) => {
      const outcome = await clients[format]({ format, model: `by-${format}`, script }).then(
        (whole) => whole as { status?: string },
        (error: unknown) => error as Error,
      )
      if (outcome instanceof Error) expect(outcome.message).not.toMatch(/^Connection error/)
      // This client returns a failed response instead of throwing.
      else expect([format, outcome.status]).toEqual(['responses', 'failed'])
    }
    await Promise.all(Object.values(faults).map(check))
  })

  test.each(formats)('of %s read the same stream without a failure', async (format) => {
    const whole = await clients[format]({ format, model: `by-${format}`, script: { tokens: 5 } })
    expect(JSON.stringify(whole)).toMatch(/\w+ \w+ \w+/)
  })
})

describe.each(formats)('%s: although a stream was requested', (format) => {
  const model = `by-${format}`

  test('400, 401, 403, 404 and 502 are plain JSON', async () => {
    const { base_url: baseUrl, admin_key, project_id } = stack().description
    const client = createClient({ baseUrl, credential: admin_key })
    const { value: cannot } = await client.call(createProjectApiKey, {
      params: { project_id },
      body: { name: 'cannot call models', permissions: ['credits.read'] },
    })
    const invalid = { messagesType: 'invalid_request_error' }
    const unknown = await ask(target(), { format, model: 'unknown' })
    const absent = { code: 'model_not_found', messagesType: 'not_found_error' }
    expectRefusal(unknown, format, { ...absent, status: 404 })
    const malformed = await ask(target(), { format, model, body: { temperature: 'hot' } })
    expectRefusal(malformed, format, { ...invalid, status: 400, code: 'invalid_request' })
    const stranger = await ask(target(`gate_prj_${'x'.repeat(40)}`), { format, model })
    const authentication = { code: 'invalid_api_key', messagesType: 'authentication_error' }
    expectRefusal(stranger, format, { ...authentication, status: 401 })
    const forbidden = await ask(target(cannot), { format, model })
    const permission = { code: 'permission_denied', messagesType: 'permission_error' }
    expectRefusal(forbidden, format, { ...permission, status: 403 })
    expectRefusal(await ask(target(), { format, model: 'absent' }), format, failure)
  })

  test('429 is plain JSON', async () => {
    const { project_key } = stack().description
    // A free key has four slots; they are all taken when the upstream has four calls.
    const script = { headMs: 120_000 }
    const held = [1, 2, 3, 4].map(() => begin(target(project_key), { format, model, script }))
    const openAtUpstream = async () => (await stateOf(upstream.url)).open
    await expect.poll(openAtUpstream, { timeout: 60_000, interval: 20 }).toBe(4)
    const refused = await ask(target(project_key), { format, model })
    const limit = { code: 'rate_limit_exceeded', messagesType: 'rate_limit_error' }
    expectRefusal(refused, format, { ...limit, status: 429 })
    expect(refused.headers['retry-after']).toBe('1')
    for (const { hangUp } of held) hangUp()
    await expect.poll(openAtUpstream, { timeout: 60_000, interval: 20 }).toBe(0)
  })
})
