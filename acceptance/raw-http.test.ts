import { connect } from 'node:net'

import { errorBodies } from '@gatehouse/contract/error-body'
import { describe, expect, test } from 'vitest'

import { type Exchange, exchange as exchangeWith } from './support/raw-exchange.ts'
import { canary, useStack } from './support/use-stack.ts'

// Requests that no well-behaved client sends. Each is answered with a request id, or its connection is closed; there
// are never two answers for one request, and never a hang. The tests run concurrently, because most of them wait for a
// connection to stay silent.

const stack = useStack({ environment: { CONNECTIONS_MAX: '50' } })

const exchange = (bytes: string | Buffer, options?: { quietMs?: number }) =>
  exchangeWith(stack().description.base_url, bytes, options)

function expectAnswer({ text, heads }: Exchange, status: number, code: string) {
  expect(heads).toHaveLength(1)
  const [head = '', body = ''] = text.split('\r\n\r\n')
  expect([head.slice(9, 12), text]).toEqual([String(status), text])
  const { error } = errorBodies.admin.parse(JSON.parse(body))
  expect(error.code).toBe(code)
  expect(head.toLowerCase()).toContain(`x-request-id: ${error.request_id}`)
  expect(head.toLowerCase()).toContain(`\r\nrequest-id: ${error.request_id}`)
}

const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, 'host: x', ...headers, '', ''].join('\r\n')
const post = (body: string, ...headers: string[]) =>
  ['POST /v1/organization/projects HTTP/1.1', 'host: x', ...headers, '', body].join('\r\n')
const key = () => `authorization: Bearer ${stack().description.admin_key}`
const json = 'content-type: application/json'

test('a connection with more than 32 unanswered requests is closed, and they are not served', async () => {
  const { base_url: baseUrl } = stack().description
  const served = async () =>
    Number(
      /gatehouse_request_seconds_count\{method="GET",route="\/openapi.json",status="200"\} (\d+)/.exec(
        await (await fetch(stack().description.metrics_urls[0] ?? '')).text(),
      )?.[1] ?? 0,
    )
  const before = await served()
  const { port, hostname } = new URL(baseUrl)
  const socket = connect(Number(port), hostname).pause()
  const closed = new Promise((resolve) =>
    socket.on('error', () => undefined).once('close', resolve),
  )
  socket.write(get('/openapi.json').repeat(1000))
  socket.resume()
  await closed
  expect((await fetch(`${baseUrl}/health/live`)).status).toBe(200)
  expect((await served()) - before).toBeLessThanOrEqual(33)
})

describe.concurrent('not HTTP', () => {
  test.each([
    ['noise', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
    ['a bad header', 'GET / HTTP/1.1\r\nhost x\r\n\r\n'],
    ['a line feed in a header', 'GET / HTTP/1.1\r\nhost: x\r\na: b\nc\r\n\r\n'],
    ['a negative length', post('', 'content-length: -1')],
    ['two lengths', post('{}', 'content-length: 2', 'content-length: 3')],
    ['a length and chunks', post('0\r\n\r\n', 'content-length: 5', 'transfer-encoding: chunked')],
    ['an unknown transfer coding', post('', 'transfer-encoding: x-magic')],
    ['chunked not last', post('0\r\n\r\n', 'transfer-encoding: chunked, identity')],
  ])('400 or a closed connection: %s', async (_, bytes) => {
    const answer = await exchange(bytes)
    expect(answer.heads.length).toBeLessThanOrEqual(1)
    if (answer.heads.length > 0) expect(answer.status).toBe(400)
  })

  test('400: a broken chunk in a body that was being read', async () => {
    const answer = await exchange(post('zz\r\n\r\n', key(), json, 'transfer-encoding: chunked'))
    expectAnswer(answer, 400, 'invalid_request')
  })

  test('414: a path parameter over 8 KiB', async () => {
    const path = `/v1/organization/projects/${'a'.repeat(8200)}`
    expectAnswer(await exchange(get(path)), 414, 'url_too_long')
  })

  test('400: no host', async () => {
    expectAnswer(await exchange('GET /health/live HTTP/1.1\r\n\r\n'), 400, 'invalid_request')
  })

  test('400: HTTP/0.9', async () => {
    const { text } = await exchange('GET /v1/models\r\n\r\n')
    expect(text).toContain('"code":"invalid_request"')
    expect(text).toContain('HTTP/0.9 is not supported')
  })

  test('400: a transfer coding besides chunked', async () => {
    const body = '2\r\n{}\r\n0\r\n\r\n'
    const answer = await exchange(post(body, key(), json, 'transfer-encoding: gzip, chunked'))
    expectAnswer(answer, 400, 'invalid_request')
  })

  test('431: headers over 16 KiB', async () => {
    expectAnswer(await exchange(get('/', `a: ${'x'.repeat(17_000)}`)), 431, 'headers_too_large')
  })

  test('414: a URL over 8 KiB', async () => {
    expectAnswer(await exchange(get(`/health/live?${'x'.repeat(9000)}`)), 414, 'url_too_long')
  })

  test('400: a badly encoded path', async () => {
    expectAnswer(await exchange(get('/v1/organization/projects/%zz')), 400, 'invalid_request')
  })
})

test.concurrent.each(['authorization', 'host', 'content-type', 'x-api-key'])(
  '400: the header %s sent twice',
  async (name) => {
    const twice = [`${name}: a`, ...(name === 'host' ? [] : [`${name}: b`])]
    expectAnswer(await exchange(get('/v1/organization/projects', ...twice)), 400, 'invalid_request')
  },
)

test.concurrent('a second request hidden in a body is not answered', async () => {
  const hidden = get('/health/live')
  const body = `${'x'.repeat(10)}${hidden}`
  const answer = await exchange(
    post(body, key(), json, `content-length: ${Buffer.byteLength(body)}`),
  )
  expectAnswer(answer, 400, 'invalid_json')
})

test.concurrent('a body that is too large ends the connection instead of being read', async () => {
  const body = 'x'.repeat(70_000)
  const request = post(body, key(), json, `content-length: ${body.length}`)
  const { text } = await exchange(request + get('/health/live'))
  expect(text).toContain('413')
  expect(text.match(/"status":"ok"/g) ?? []).toHaveLength(0)
})

test.concurrent('an unknown route is answered before its body arrives, whatever the method and type', async () => {
  const announced = ['content-type: ;;', 'content-length: 1000000', 'host: x']
  // The time of a request without a body. To wait for a body until the timeout would take many times as long.
  const baseline = await exchange(get('/health/live'))
  for (const [start, status, code] of [
    ['POST /nope', 404, 'route_not_found'],
    ['PUT /v1/organization/projects', 405, 'method_not_allowed'],
    ['QUERY /v1/organization/projects', 405, 'method_not_allowed'],
  ] as const) {
    const answer = await exchange([`${start} HTTP/1.1`, ...announced, '', 'xxx'].join('\r\n'))
    expectAnswer(answer, status, code)
    expect(answer.elapsedMs / baseline.elapsedMs).toBeLessThan(5)
  }
})

test.concurrent('invalid bytes after a request do not replace its answer', async () => {
  const body = JSON.stringify({ name: 'real' })
  const request = post(body, key(), json, `content-length: ${body.length}`)
  const { text } = await exchange(`${request}XXX\r\n\r\n`)
  expect(text).not.toContain('invalid_request')
})

test.concurrent('a body that is ignored may be of any type', async () => {
  const { project_id } = stack().description
  const path = `/v1/organization/projects/${project_id}/archive`
  const head = [`POST ${path} HTTP/1.1`, 'host: x', key(), 'content-type: ;;', 'content-length: 3']
  expectAnswer(await exchange([...head, '', 'xxx'].join('\r\n')), 409, 'default_project')
})

test.concurrent('an unknown Expect header is ignored', async () => {
  expect((await exchange(get('/health/live', 'expect: wonders'))).status).toBe(200)
})

test.concurrent('answers are not cached', async () => {
  const { text } = await exchange(get('/v1/organization/projects', key()))
  expect(text.toLowerCase()).toContain('cache-control: no-store')
})

test.concurrent('a route is chosen by the path alone', async () => {
  const odd = ['//v1/organization/projects', '/V1/organization/projects']
  for (const path of [
    ...odd,
    '/v1/organization/../organization/projects',
    '/v1%2forganization/projects',
  ]) {
    expectAnswer(await exchange(get(path, key())), 404, 'route_not_found')
  }
  const absolute = await exchange(get('http://evil.example/health/live'))
  expect([200, 404]).toContain(absolute.status)
})

test.concurrent('HEAD is answered like GET, without a body', async () => {
  const { text, status } = await exchange(get('/health/live').replace('GET', 'HEAD'))
  expect(status).toBe(200)
  expect(text.endsWith('\r\n\r\n')).toBe(true)
  const refused = await exchange(get('/v1/organization/projects').replace('GET', 'HEAD'))
  expect(refused.status).toBe(401)
})

test.concurrent("the caller's own request id is not used, and secrets in unusual places are not logged", async () => {
  const answer = await exchange(
    get(`/health/live?key=${canary}`, `x-request-id: ${canary} x`, `cookie: ${canary}`),
  )
  expect(answer.text).not.toContain(canary)
})

test.concurrent('no CORS headers on administration endpoints', async () => {
  const answer = await exchange(
    get('/v1/organization/projects', 'origin: https://evil.example', key()),
  )
  expect(answer.text.toLowerCase()).not.toContain('access-control-')
})

test.concurrent('408: a sender that never finishes its headers', async () => {
  const answer = await exchange('GET / HTTP/1.1\r\nhost: x\r\n')
  expectAnswer(answer, 408, 'request_timeout')
  expect(answer.elapsedMs).toBeGreaterThan(9000)
})

test('a caller who hangs up midway is not counted as a server error', async () => {
  const { hostname, port } = new URL(stack().description.base_url)
  for (let round = 0; round < 30; round++) {
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(get('/v1/organization/projects', key()).repeat(3))
        setTimeout(() => socket.resetAndDestroy(), Math.random() * 5)
      })
      socket.on('close', () => resolve())
      socket.on('error', () => undefined)
    })
  }
  const readMetrics = async () => (await fetch(stack().description.metrics_urls[0] ?? '')).text()
  await expect.poll(readMetrics, { timeout: 60_000 }).toContain('gatehouse_requests_in_flight 0')
  expect(await readMetrics()).not.toMatch(/gatehouse_request_seconds_count\{[^}]*status="500"/)
})
