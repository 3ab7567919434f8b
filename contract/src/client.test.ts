import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'

import { buildUrl, CallFailed, createClient } from './client.ts'
import { createMessage } from './message.ts'
import { saveGatewayConfig } from './policy-gateway/gateway.ts'
import { createProject, listProjects, retrieveProject } from './project.ts'

const path = '/v1/organization/projects/:project_id/archive'
const address = (project_id: unknown) => buildUrl('http://gate.example', path, { project_id })

test.each([
  ['proj_1', 'proj_1'],
  ['a/b', 'a%2Fb'],
  ['../x', '..%2Fx'],
  ['a?b#c', 'a%3Fb%23c'],
  ['a b', 'a%20b'],
  ['%2e%2e', '%252e%252e'],
  ['...', '...'],
  ['..\\x', '..%5Cx'],
  ['é😀', '%C3%A9%F0%9F%98%80'],
  [':key_id', '%3Akey_id'],
  ['$&', '%24%26'],
  [7, '7'],
])('the id %j is one segment of the path', (id, segment) => {
  expect(address(id)).toBe(`http://gate.example/v1/organization/projects/${segment}/archive`)
})

test.each(['', '.', '..', undefined, null, 1.5, Number.NaN, ['x'], {}])('%j is not an id', (id) => {
  expect(() => address(id)).toThrow("An id in the path is missing, or is '.' or '..'.")
})

test('an id cannot change the path, the query or the host', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (id) => {
      fc.pre(id !== '.' && id !== '..')
      const { host, pathname, search, hash } = new URL(address(id))
      const [, , , , segment, ...rest] = pathname.split('/')
      expect([host, search, hash, ...rest]).toEqual(['gate.example', '', '', 'archive'])
      expect(decodeURIComponent(segment ?? '')).toBe(id)
    }),
  )
})

test.each([
  ['http://gate.example', 'http://gate.example/x'],
  ['http://gate.example/', 'http://gate.example/x'],
  ['http://gate.example/under/it//', 'http://gate.example/under/it/x'],
])('the base address %s gives %s', (baseUrl, expected) => {
  expect(buildUrl(baseUrl, '/x')).toBe(expected)
})

test('query values are encoded, and undefined ones are not sent', () => {
  const query = { after: 'a&b=c d', limit: 5, order: undefined }
  expect(buildUrl('http://gate.example', '/x', {}, query)).toBe(
    'http://gate.example/x?after=a%26b%3Dc+d&limit=5',
  )
})

type Seen = IncomingMessage & { sent: string }

/** A service on a socket; what it was asked is in `seen`. */
async function serve(answer: (response: ServerResponse) => void) {
  const seen: Seen[] = []
  const listener: RequestListener = (request, response) => {
    void text(request).then((sent) => {
      seen.push(Object.assign(request, { sent }))
      answer(response)
    })
  }
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { seen, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const answerWith = (status: number, body: string, headers = {}) =>
  serve((response) => void response.writeHead(status, headers).end(body))

const caught = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'answered',
    (error: unknown) => error,
  )

test('a call sends method, path, credential, key and body, and returns the answer', async () => {
  const { seen, baseUrl } = await answerWith(201, '{"id":"proj_1","new_member":1}')
  const client = createClient({ baseUrl, credential: 'secret' })
  const body = { name: 'Café' }
  const answer = await client.call(createProject, { body }, { idempotencyKey: 'k1' })
  expect(answer).toEqual({ id: 'proj_1', new_member: 1 })
  expect(seen).toMatchObject([
    {
      method: 'POST',
      url: '/v1/organization/projects',
      sent: '{"name":"Café"}',
      headers: {
        authorization: 'Bearer secret',
        'idempotency-key': 'k1',
        'content-type': 'application/json',
      },
    },
  ])
})

test('headers of the endpoint are sent, and cannot replace the credential', async () => {
  const { seen, baseUrl } = await answerWith(200, '{}')
  const client = createClient({ baseUrl, credential: 'gate_adm_1' })
  const headers = { 'If-Match': '"7"', Authorization: 'Bearer other' }
  await client.call(saveGatewayConfig, { headers, body: { config: {} } })
  await client.call(saveGatewayConfig, { headers: { 'If-Match': undefined }, body: { config: {} } })
  expect(seen.map(({ headers: sent }) => [sent['if-match'], sent['authorization']])).toEqual([
    ['"7"', 'Bearer gate_adm_1'],
    [undefined, 'Bearer gate_adm_1'],
  ])
})

test('a read without a credential sends neither a credential nor a body', async () => {
  const { seen, baseUrl } = await answerWith(200, '{}')
  await createClient({ baseUrl }).call(listProjects, { query: { limit: '2' } })
  expect(seen[0]).toMatchObject({ url: '/v1/organization/projects?limit=2', sent: '' })
  for (const name of ['authorization', 'content-type', 'idempotency-key']) {
    expect(seen[0]?.headers).not.toHaveProperty(name)
  }
})

const readOne = (baseUrl: string, timeoutMs = 5000) =>
  caught(
    createClient({ baseUrl, timeoutMs }).call(retrieveProject, { params: { project_id: 'x' } }),
  )

test('a refusal carries status, code, message, parameter and request id', async () => {
  const error = { code: 'invalid_parameter', message: 'No.', param: 'path.project_id', extra: 1 }
  const body = JSON.stringify({ error, more: true })
  const { baseUrl } = await answerWith(422, body, { 'x-request-id': 'req_1' })
  const failure = await readOne(baseUrl)
  expect(failure).toBeInstanceOf(CallFailed)
  expect(failure).toMatchObject({
    status: 422,
    code: 'invalid_parameter',
    message: 'No.',
    param: 'path.project_id',
    requestId: 'req_1',
  })
})

test.each([
  [{ error: 'No.', code: 'invalid_api_key' }, 'invalid_api_key', 'No.', null],
  [{ type: 'error', error: { type: 'x', message: 'No.', code: 'y' } }, 'y', 'No.', null],
  [
    { error: { message: 'No.', type: 'x', param: 'body.n', code: null } },
    'unknown',
    'No.',
    'body.n',
  ],
  [
    { detail: [{ loc: ['body', 'messages'], msg: 'Field required', type: 'missing', input: {} }] },
    'invalid_parameter',
    'body.messages: Field required.',
    'body.messages',
  ],
])('the error %j of model callers is read', async (body, code, message, param) => {
  const { baseUrl } = await answerWith(422, JSON.stringify(body))
  expect(await readOne(baseUrl)).toMatchObject({ status: 422, code, message, param })
})

test.each([
  ['', 'nothing'],
  ['<html>bad gateway</html>', 'a page'],
  ['{"error":"flat"}', 'another body'],
  ['null', 'null'],
])('an error with the body %j still reports its status', async (body) => {
  const { baseUrl } = await answerWith(502, body)
  expect(await readOne(baseUrl)).toMatchObject({
    name: 'CallFailed',
    status: 502,
    code: 'unknown',
    message: 'The service answered 502 without an explanation.',
    param: null,
    requestId: null,
  })
})

test.each([301, 302, 303, 307, 308])('a %i is not followed: the key stays here', async (status) => {
  const elsewhere = await answerWith(200, '{}')
  const { baseUrl } = await answerWith(status, '', { location: elsewhere.baseUrl })
  expect(await readOne(baseUrl)).toBeInstanceOf(TypeError)
  expect(elsewhere.seen).toEqual([])
})

test('a service that never answers ends with a timeout', async () => {
  const { baseUrl } = await serve(() => undefined)
  expect(await readOne(baseUrl, 50)).toMatchObject({ name: 'TimeoutError' })
})

test.each(['', '{"object":"li', '<html></html>'])(
  'a 200 with the body %j is not an answer',
  async (body) => {
    const { baseUrl } = await answerWith(200, body)
    expect(await readOne(baseUrl)).toBeInstanceOf(SyntaxError)
  },
)

/** Answers in turn, with a status and headers or by hanging up (null); then 200. */
async function serveInTurn(answers: readonly ([number, Record<string, string>] | null)[]) {
  const arrivedMs: number[] = []
  const { seen, baseUrl } = await serve((response) => {
    const answer = answers[arrivedMs.push(performance.now()) - 1]
    if (answer === null) response.destroy()
    else response.writeHead(answer?.[0] ?? 200, answer?.[1]).end('{}')
  })
  /** How long the service was left alone before each repetition. */
  const pausesMs = () => arrivedMs.slice(1).map((at, index) => at - (arrivedMs[index] ?? 0))
  return { seen, baseUrl, pausesMs }
}

const quick = { attemptsMax: 3, totalMs: 10_000, backoffMs: 100, backoffMaxMs: 150, jitterMs: 80 }
const project = { params: { project_id: 'x' } }
/** Timers may fire a little early by the clock of the test. */
const early = 2

test.each([429, 503, 529])('%i: a read is repeated after backoff with jitter', async (status) => {
  const { seen, baseUrl, pausesMs } = await serveInTurn([
    [status, {}],
    [status, {}],
  ])
  const waits: number[] = []
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, waits.push(ms) && ms))
  const client = createClient({ baseUrl, retry: quick, wait })
  expect(await client.call(retrieveProject, project)).toEqual({})
  expect(seen.length).toBe(3)
  // From half of the longest wait to all of it: 100 ms, then 150 instead of 200.
  for (const [index, longest] of [100, 150].entries()) {
    expect(waits[index]).toBeGreaterThanOrEqual(longest / 2)
    expect(waits[index]).toBeLessThanOrEqual(longest)
    expect(pausesMs()[index]).toBeGreaterThanOrEqual(waits[index]! - early)
  }
})

test.each([0, 0.999])(
  'Retry-After in seconds is waited for, and %d of the jitter',
  async (part) => {
    const { baseUrl, pausesMs } = await serveInTurn([[429, { 'retry-after': '1' }]])
    const client = createClient({ baseUrl, retry: quick, random: () => part })
    await client.call(retrieveProject, project)
    expect(pausesMs()[0]).toBeGreaterThanOrEqual(1000 + part * quick.jitterMs - early)
    expect(pausesMs()[0]).toBeLessThan(5000)
  },
)

test('Retry-After as a date is waited for', async () => {
  const dateMs = Math.ceil(Date.now() / 1000) * 1000 + 1000
  const headers = { 'retry-after': new Date(dateMs).toUTCString() }
  const { seen, baseUrl } = await serveInTurn([[503, headers]])
  await createClient({ baseUrl, retry: quick }).call(retrieveProject, project)
  expect(seen.length).toBe(2)
  expect(Date.now()).toBeGreaterThanOrEqual(dateMs - early)
})

test('clients that are refused together come back at different times', async () => {
  const waits = new Set<number>()
  const wait = async (ms: number) => void waits.add(ms)
  for (let client = 0; client < 20; client++) {
    const { baseUrl } = await serveInTurn([[429, { 'retry-after': '0' }]])
    await createClient({ baseUrl, retry: quick, wait }).call(retrieveProject, project)
  }
  expect(waits.size).toBeGreaterThan(10)
  expect(Math.max(...waits)).toBeLessThanOrEqual(quick.jitterMs)
})

test('attempts are capped, and the last refusal is reported', async () => {
  const headers = { 'retry-after': '0', 'x-request-id': 'req_1' }
  const { seen, baseUrl } = await serveInTurn(
    Array.from({ length: 9 }, (): [number, Record<string, string>] => [503, headers]),
  )
  const failure = await caught(
    createClient({ baseUrl, retry: quick }).call(retrieveProject, project),
  )
  expect(seen.length).toBe(3)
  expect(failure).toMatchObject({ name: 'CallFailed', status: 503, retryAfterMs: 0 })
})

test('a wait that would exceed the total time is not begun', async () => {
  const { seen, baseUrl } = await serveInTurn([[429, { 'retry-after': '60' }]])
  const startedMs = performance.now()
  const failure = await caught(
    createClient({ baseUrl, retry: { ...quick, totalMs: 2000 } }).call(retrieveProject, project),
  )
  expect(failure).toMatchObject({ status: 429, retryAfterMs: 60_000 })
  expect(seen.length).toBe(1)
  expect(performance.now() - startedMs).toBeLessThan(2000)
})

test('the total time is capped, also while an attempt waits for its answer', async () => {
  const { baseUrl } = await serve((response) => {
    setTimeout(() => response.writeHead(503).end('{}'), 100)
  })
  const retry = { ...quick, attemptsMax: 1000, backoffMs: 10, backoffMaxMs: 10, totalMs: 1000 }
  const startedMs = performance.now()
  const failure = await caught(createClient({ baseUrl, retry }).call(retrieveProject, project))
  const tookMs = performance.now() - startedMs
  // The last attempt ends with the service's refusal, or is given up when the time is over.
  expect(['CallFailed', 'TimeoutError']).toContain((failure as Error).name)
  expect(tookMs).toBeGreaterThan(700)
  expect(tookMs).toBeLessThan(4000)
})

test('a broken connection is tried again', async () => {
  const { seen, baseUrl } = await serveInTurn([null])
  const client = createClient({ baseUrl, retry: quick })
  expect(await client.call(retrieveProject, project)).toEqual({})
  expect(seen.length).toBe(2)
})

test.each([null, [429, {}], [503, {}]] as const)(
  'a change is repeated with its key only (%j)',
  async (first) => {
    const unkeyed = await serveInTurn([first as never])
    const body = { name: 'x' }
    const settings = { retry: quick }
    const failure = await caught(
      createClient({ ...settings, baseUrl: unkeyed.baseUrl }).call(createProject, { body }),
    )
    expect(failure).toBeInstanceOf(Error)
    expect(unkeyed.seen.length).toBe(1)

    const keyed = await serveInTurn([first as never])
    const client = createClient({ ...settings, baseUrl: keyed.baseUrl })
    await client.call(createProject, { body }, { idempotencyKey: 'k1' })
    expect(keyed.seen.map(({ headers, sent }) => [headers['idempotency-key'], sent])).toEqual([
      ['k1', '{"name":"x"}'],
      ['k1', '{"name":"x"}'],
    ])
  },
)

test.each([
  { earlier: null, hadUnknownOutcome: true },
  { earlier: [503, {}], hadUnknownOutcome: true },
  { earlier: [429, {}], hadUnknownOutcome: false },
])('a refusal after $earlier says whether the change may have been made', async (row) => {
  const { baseUrl } = await serveInTurn([row.earlier as never, [429, { 'retry-after': '600' }]])
  const client = createClient({ baseUrl, retry: quick })
  const changing = client.call(createProject, { body: { name: 'x' } }, { idempotencyKey: 'k1' })
  expect(await caught(changing)).toMatchObject({
    status: 429,
    hadUnknownOutcome: row.hadUnknownOutcome,
  })
})

test('a key does not make a call repeatable whose endpoint takes none', async () => {
  const { seen, baseUrl } = await serveInTurn([[503, { 'retry-after': '0' }]])
  const body = { model: 'x', messages: [{ role: 'user' as const, content: 'Hello' }] }
  const client = createClient({ baseUrl, retry: quick })
  const failure = await caught(client.call(createMessage, { body }, { idempotencyKey: 'k1' }))
  expect(failure).toMatchObject({ status: 503 })
  expect(seen.length).toBe(1)
})

test.each([400, 401, 402, 403, 404, 409, 422, 500, 502, 504])('%i is final', async (status) => {
  const { seen, baseUrl } = await serveInTurn([[status, {}]])
  const failure = await caught(
    createClient({ baseUrl, retry: quick }).call(retrieveProject, project),
  )
  expect(failure).toMatchObject({ status })
  expect(seen.length).toBe(1)
})
