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
])('the id %j is one segment of the path', (id, segment) => {
  expect(address(id)).toBe(`http://gate.example/v1/organization/projects/${segment}/archive`)
})

test.each(['', '.', '..', undefined, null, 7, ['x'], {}])('%j is not an id', (id) => {
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
