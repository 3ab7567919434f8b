import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'

import { createChatCompletion } from '@gatehouse/contract/chat-completion'
import { countTokens } from '@gatehouse/contract/count-tokens'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { errorBodies } from '@gatehouse/contract/error-body'
import { createMessage } from '@gatehouse/contract/message'
import { createResponse } from '@gatehouse/contract/response'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import type { House } from '#assemble.ts'
import { createLog } from '#platform/log.ts'
import { writeCatalogueOfOne } from '#testing/catalogue-of-one.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import {
  createDatabaseProxy,
  createProjectKey,
  createTestClock,
  masterKey,
} from '#testing/test-gateway.ts'

// A caller without an account has one request: how it is identified, and that the request is spent once.

const bodies: Record<string, object> = {
  createMessage: { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] },
  createResponse: { model: 'm', input: 'Hello' },
  createChatCompletion: { model: 'm', messages: [{ role: 'user', content: 'Hello' }] },
  countTokens: { model: 'm', messages: [{ role: 'user', content: 'Hello' }] },
}

/** One word of Chat Completions, unless it is told to fail. */
async function startUpstream() {
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  const upstream = { calls: 0, status: 200, url: '' }
  const server = createServer((request, response) => {
    upstream.calls++
    request.resume().once('end', () => {
      response.writeHead(upstream.status, { 'content-type': 'text/event-stream' })
      const isGood = upstream.status === 200
      response.end(
        isGood ? `${chunk({ content: 'Hi' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n` : '',
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return upstream
}

type Asked = { from?: string; headers?: Record<string, string | string[]>; body?: object }

async function prepare(environment: Record<string, string> = {}) {
  const upstream = await startUpstream()
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  const { now, pass } = createTestClock()
  const MODELS_FILE = await writeCatalogueOfOne(upstream.url)
  const api = await createTestApi({
    now,
    environment: {
      MODELS_FILE,
      STATE_DIRECTORY: dirname(MODELS_FILE),
      FREE_REQUESTS_PER_DAY: '1000',
      ...environment,
    },
    change: (house: House) => ({ ...house, log }),
  })
  // Callers with a key are let through once their policies are known.
  await waitUntil(api.house.policies.areKnown)
  const ask = (endpoint: Endpoint, { from = '192.0.2.1', headers, body }: Asked = {}) =>
    api.app.inject({
      method: 'POST',
      url: endpoint.path,
      remoteAddress: from,
      headers: { 'x-free-tier': 'true', ...headers } as Record<string, string>,
      payload: body ?? bodies[endpoint.id] ?? {},
    })
  const statusOf = async (asked: Asked, endpoint: Endpoint = createMessage) =>
    (await ask(endpoint, asked)).statusCode
  const claims = () => api.house.db.selectFrom('free_request').selectAll().execute()
  return { ...api, upstream, ask, statusOf, claims, lines, pass }
}

const used = 'The one free request of your network has been used. Sign up to continue.'

test('200: the first request is served and costs nothing', async () => {
  const { ask, claims, upstream } = await prepare()
  const response = await ask(createMessage)
  expect(response.statusCode).toBe(200)
  expect(response.json()).toMatchObject({ remaining_credits: null, estimated_credits_used: 0 })
  expect(response.json<{ estimated_cost_usd: number }>().estimated_cost_usd).toBeGreaterThan(0)
  expect(response.headers['x-policy-epoch']).toBe('0')
  expect(upstream.calls).toBe(1)
  expect(await claims()).toMatchObject([{ request_id: response.headers['x-request-id'] }])
})

test('401 from /v1/messages: the second request is told to sign up', async () => {
  const { ask, upstream } = await prepare()
  expect((await ask(createResponse)).statusCode).toBe(200)
  const response = await ask(createMessage)
  expect(response.statusCode).toBe(401)
  expect(response.json()).toMatchObject({
    type: 'error',
    error: { type: 'authentication_error', message: used, code: 'free_request_used' },
  })
  expect(response.headers['www-authenticate']).toBe('Bearer realm="inference"')
  expect(upstream.calls).toBe(1)
})

test('401 from /v1/responses: the second request is told to sign up', async () => {
  const { ask } = await prepare()
  expect((await ask(createMessage)).statusCode).toBe(200)
  const response = await ask(createResponse)
  expect(response.statusCode).toBe(401)
  expect(response.json()).toEqual({ error: used, code: 'free_request_used' })
  expect(response.headers['www-authenticate']).toBe('Bearer realm="inference"')
})

test('401: of many at once, in both formats, one is served', async () => {
  const { ask, upstream, claims } = await prepare()
  const responses = await Promise.all(
    Array.from({ length: 20 }, (_, index) => ask(index % 2 ? createMessage : createResponse)),
  )
  const statuses = responses.map(({ statusCode }) => statusCode)
  // Some found all slots taken.
  expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  expect(statuses.every((status) => [200, 401, 429].includes(status))).toBe(true)
  expect([upstream.calls, (await claims()).length]).toEqual([1, 1])
})

test.each(['false', '', 'true, true'])(
  "400: X-Free-Tier: '%s' is not understood",
  async (value) => {
    const { ask, claims } = await prepare()
    for (const endpoint of [createMessage, createResponse]) {
      const response = await ask(endpoint, { headers: { 'x-free-tier': value } })
      expect(response.statusCode).toBe(400)
      expect(errorBodies[endpoint.dialect].safeParse(response.json()).success).toBe(true)
      expect(response.body).toContain('invalid_request')
    }
    expect(await claims()).toEqual([])
  },
)

test('400: a header that was sent twice is not understood', async () => {
  const { statusOf } = await prepare()
  expect(await statusOf({ headers: { 'x-free-tier': ['true', 'true'] } })).toBe(400)
})

test('400: a request that cannot be read spends nothing', async () => {
  const { statusOf, claims } = await prepare()
  expect(await statusOf({ body: { model: 'm' } })).toBe(400)
  expect(await statusOf({ body: { ...bodies['createMessage'], model: 'unknown' } })).toBe(404)
  expect(await claims()).toEqual([])
  expect(await statusOf({})).toBe(200)
})

test('401: without the header and without a credential nothing is given', async () => {
  const { app, claims } = await prepare()
  const response = await app.inject({ method: 'POST', url: '/v1/messages', payload: {} })
  expect(response.statusCode).toBe(401)
  expect(response.body).toContain('missing_credentials')
  expect(await claims()).toEqual([])
})

test.each<Endpoint>([createChatCompletion, countTokens])(
  '401: $id gives no anonymous requests',
  async (endpoint) => {
    const { ask, claims } = await prepare()
    const response = await ask(endpoint)
    expect(response.statusCode).toBe(401)
    expect(response.body).toContain('missing_credentials')
    expect(await claims()).toEqual([])
  },
)

test('401: a gateway that gives none says so', async () => {
  const { ask } = await prepare({ FREE_REQUESTS_PER_DAY: '0' })
  const response = await ask(createMessage)
  expect(response.statusCode).toBe(401)
  expect(response.body).toContain('missing_credentials')
  expect(response.body).toContain('offers no free requests')
  expect(response.headers['www-authenticate']).toBe('Bearer realm="inference"')
})

test('a credential counts alone, good or bad, whatever the header says', async () => {
  const { ask, organization, house, claims } = await prepare()
  const { headers } = await createProjectKey(house, organization)
  for (const value of ['true', 'nonsense']) {
    const good = await ask(createMessage, { headers: { ...headers, 'x-free-tier': value } })
    expect([200, 402]).toContain(good.statusCode)
    const byKey = { 'x-api-key': headers.authorization.slice(7), 'x-free-tier': value }
    expect([200, 402]).toContain((await ask(createMessage, { headers: byKey })).statusCode)
    for (const bad of [{ authorization: 'Bearer nothing' }, { 'x-api-key': 'nothing' }]) {
      const response = await ask(createMessage, { headers: { ...bad, 'x-free-tier': value } })
      expect(response.statusCode).toBe(401)
      expect(response.body).toContain('invalid_api_key')
    }
  }
  expect(await claims()).toEqual([])
})

test('what a caller says about its address does not count', async () => {
  const { statusOf } = await prepare()
  expect(await statusOf({})).toBe(200)
  for (const forged of ['198.51.100.7', '2001:db8::7', '198.51.100.7, 192.0.2.9']) {
    const headers = { 'x-forwarded-for': forged, 'x-real-ip': forged, forwarded: `for=${forged}` }
    expect(await statusOf({ headers })).toBe(401)
  }
  expect(await statusOf({ from: '::ffff:192.0.2.1' })).toBe(401)
  expect(await statusOf({ from: '192.0.2.2' })).toBe(200)
})

test('behind trusted proxies the last hop that none of them is counts', async () => {
  const { statusOf } = await prepare({ TRUSTED_PROXIES: '10.0.0.0/8' })
  const through = (forwarded: string) =>
    statusOf({ from: '10.0.0.1', headers: { 'x-forwarded-for': forwarded } })
  expect(await through('192.0.2.1')).toBe(200)
  expect(await through('198.51.100.7, 192.0.2.1')).toBe(401)
  expect(await through('198.51.100.7, 192.0.2.1, 10.0.0.2')).toBe(401)
  expect(await through('192.0.2.1, 198.51.100.7')).toBe(200)
  // A client that reaches us past the proxies can state no address but its own.
  expect(await statusOf({ from: '192.0.2.1', headers: { 'x-forwarded-for': '192.0.2.9' } })).toBe(
    401,
  )
})

test('401: a hop that is no address identifies no caller', async () => {
  const { ask, claims } = await prepare({ TRUSTED_PROXIES: '10.0.0.0/8' })
  for (const forwarded of ['unknown', '192.0.2.1:4711', '192.0.2.1, _hidden']) {
    const headers = { 'x-forwarded-for': forwarded }
    const response = await ask(createMessage, { from: '10.0.0.1', headers })
    expect([response.statusCode, forwarded]).toEqual([401, forwarded])
    expect(response.body).toContain('missing_credentials')
  }
  expect(await claims()).toEqual([])
})

test('neighbours in one /64 share a request, and a /56 gives four in a day', async () => {
  const { statusOf, ask, pass } = await prepare({ TRUSTED_PROXIES: '10.0.0.1' })
  const through = (address: string) => ({
    from: '10.0.0.1',
    headers: { 'x-forwarded-for': address },
  })
  expect(await statusOf(through('2001:db8:1:100::1'))).toBe(200)
  expect(await statusOf(through('2001:db8:1:100:ffff::2'))).toBe(401)
  for (const each of ['101', '102', '103']) {
    expect(await statusOf(through(`2001:db8:1:${each}::1`))).toBe(200)
  }
  const fifth = await ask(createMessage, through('2001:db8:1:104::1'))
  expect([fifth.statusCode, fifth.headers['retry-after']]).toEqual([429, String(12 * 60 * 60)])
  expect(await statusOf(through('2001:db8:1:200::1'))).toBe(200)
  pass(12 * 60 * 60 * 1000)
  expect(await statusOf(through('2001:db8:1:104::1'))).toBe(200)
  expect(await statusOf(through('2001:db8:1:100::1'))).toBe(401)
})

test('429: when the budget of the day is spent, new callers wait for midnight', async () => {
  const { ask, statusOf, pass, upstream } = await prepare({ FREE_REQUESTS_PER_DAY: '2' })
  expect(await statusOf({ from: '192.0.2.1' })).toBe(200)
  expect(await statusOf({ from: '192.0.2.2' })).toBe(200)
  pass(500)
  const messages = await ask(createMessage, { from: '192.0.2.3' })
  const responses = await ask(createResponse, { from: '192.0.2.3' })
  expect([messages.statusCode, responses.statusCode]).toEqual([429, 429])
  expect(messages.headers['retry-after']).toBe('43200')
  expect(messages.json()).toMatchObject({ error: { type: 'rate_limit_error' } })
  expect(responses.json()).toMatchObject({ error: { code: 'rate_limit_exceeded', param: null } })
  expect(messages.body).toContain('midnight UTC')
  expect(await statusOf({ from: '192.0.2.1' })).toBe(401)
  expect(upstream.calls).toBe(2)
  pass(12 * 60 * 60 * 1000)
  expect(await statusOf({ from: '192.0.2.3' })).toBe(200)
})

test('a model that never begins to answer gives the request back, but not what it took of the budget', async () => {
  const { statusOf, claims, upstream } = await prepare({ FREE_REQUESTS_PER_DAY: '3' })
  upstream.status = 400
  expect(await statusOf({})).toBe(400)
  expect(await statusOf({})).toBe(400)
  expect(await claims()).toEqual([])
  upstream.status = 200
  expect(await statusOf({})).toBe(200)
  expect(await statusOf({ from: '192.0.2.2' })).toBe(429)
  expect(upstream.calls).toBe(3)
})

test('429: one caller cannot spend the budget of all with calls that fail', async () => {
  const { statusOf, upstream } = await prepare()
  upstream.status = 400
  for (let attempt = 0; attempt < 4; attempt++) expect(await statusOf({})).toBe(400)
  expect(await statusOf({})).toBe(429)
  expect(upstream.calls).toBe(4)
  upstream.status = 200
  expect(await statusOf({ from: '192.0.2.2' })).toBe(200)
})

test('400: a request that may cost too much is refused before it is spent', async () => {
  const { ask, claims, statusOf } = await prepare({ FREE_REQUEST_CREDITS_MAX: '20' })
  const { model, messages } = bodies['createMessage'] as Record<string, unknown>
  const dear = await ask(createMessage, { body: { model, messages, max_tokens: 50 } })
  expect([dear.statusCode, dear.body]).toEqual([400, expect.stringContaining('more than the 20')])
  expect(await claims()).toEqual([])
  expect(await statusOf({})).toBe(200)
})

test('413: a request that is long, or does not say how long it is, is not read', async () => {
  const { ask, statusOf, claims } = await prepare()
  const content = 'x'.repeat(64 * 1024)
  const body = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content }] }
  const long = await ask(createMessage, { body })
  expect([long.statusCode, long.json<{ type: string }>().type]).toEqual([413, 'error'])
  expect(await statusOf({ headers: { 'transfer-encoding': 'chunked' } })).toBe(413)
  expect(await claims()).toEqual([])
})

test('a refusal is not remembered longer because its caller keeps asking', async () => {
  const { statusOf, house, pass } = await prepare({ FREE_REQUESTS_PER_DAY: '1' })
  expect(await statusOf({})).toBe(200)
  expect(await statusOf({ from: '192.0.2.2' })).toBe(429)
  await house.db.deleteFrom('free_budget').execute()
  for (let asked = 0; asked < 2; asked++) {
    pass(2000)
    expect(await statusOf({ from: '192.0.2.2' })).toBe(429)
  }
  pass(2000)
  expect(await statusOf({ from: '192.0.2.2' })).toBe(200)
})

test('429: each caller has the limits of a free key for itself', async () => {
  const { ask, statusOf } = await prepare()
  const broken = { body: {} }
  for (let attempt = 0; attempt < 60; attempt++) expect(await statusOf(broken)).toBe(400)
  const response = await ask(createMessage, broken)
  expect(response.statusCode).toBe(429)
  expect(response.body).toContain('limit 60')
  expect(await statusOf({ from: '192.0.2.2' })).toBe(200)
})

test('the log names neither an address nor an organization', async () => {
  const { statusOf, lines } = await prepare({ TRUSTED_PROXIES: '10.0.0.1' })
  const headers = { 'x-forwarded-for': '198.51.100.77' }
  expect(await statusOf({ from: '10.0.0.1', headers })).toBe(200)
  await waitUntil(() => lines.some((line) => line.includes('"event":"request"')))
  const line = lines.find((each) => each.includes('"event":"request"')) ?? ''
  expect(JSON.parse(line)).toMatchObject({
    credential_kind: 'anonymous',
    credential_id: expect.stringMatching(/^anonymous_[0-9a-f]{24}$/),
  })
  expect(line).not.toContain('organization_id')
  expect(lines.join('')).not.toMatch(/198\.51|10\.0\.0/)
})

test('401: a new master key gives no caller a second request', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]()) // after those of the houses, which come later
  const [first, second] = [masterKey(1), masterKey(2)]
  const withKeys = (keys: string) => prepare({ DATABASE_URL: database.url, MASTER_KEYS: keys })
  const before = await withKeys(first)
  expect(await before.statusOf({ from: '192.0.2.1' })).toBe(200)
  const added = await withKeys(`${first},${second}`)
  expect(await added.statusOf({ from: '192.0.2.1' })).toBe(401)
  expect(await added.statusOf({ from: '192.0.2.2' })).toBe(200)
  const turned = await withKeys(`${second},${first}`)
  expect(await turned.statusOf({ from: '192.0.2.1' })).toBe(401)
  expect(await turned.statusOf({ from: '192.0.2.2' })).toBe(401)
  expect(await turned.statusOf({ from: '192.0.2.3' })).toBe(200)
  expect(await before.statusOf({ from: '192.0.2.3' })).toBe(401)
  const removed = await withKeys(second)
  expect(await removed.statusOf({ from: '192.0.2.2' })).toBe(401)
})

test('503: while the database is away no caller is served, and nothing is lost', async () => {
  await using database = await createTestDatabase()
  await using proxy = await createDatabaseProxy(database.url)
  const { ask, statusOf, upstream, house, pass } = await prepare({ DATABASE_URL: proxy.url })
  expect(await statusOf({ from: '192.0.2.1' })).toBe(200)
  const caller = await house.access.freeTier.identifyCaller(createMessage, '192.0.2.3')
  pass(5000) // what was known of the first one is forgotten
  await proxy.shut()
  const unavailable = expect.objectContaining({ code: 'dependency_unavailable' })
  await expect(house.access.freeTier.claim(caller, 'req_1', 1n)).rejects.toEqual(unavailable)
  await house.access.freeTier.release(caller, 'req_1')
  for (const from of ['192.0.2.1', '192.0.2.2']) {
    const response = await ask(createMessage, { from })
    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '2'])
  }
  expect(upstream.calls).toBe(1)
  await proxy.reopen()
  expect(await statusOf({ from: '192.0.2.1' })).toBe(401)
  expect(await statusOf({ from: '192.0.2.2' })).toBe(200)
})
