import { beforeAll, expect, test } from 'vitest'

import { type Exchange, exchange } from './support/raw-exchange.ts'
import { useStack } from './support/use-stack.ts'

// Requests whose length, path or caller a proxy in front could read differently than the service. A sender must not get
// an answer to a request that it hid in another, nor reach a route without the credential it needs.

const stack = useStack({ models: null, paidUsd: '5000' })

/** The expected status; null: the connection is closed without an answer. */
type Probe = readonly [name: string, expected: number | null, bytes: () => string]

const project = () => `Authorization: Bearer ${stack().description.project_key}\r\n`
const admin = () => stack().description.admin_key
/** Answered with 200 if it were taken for a request. */
const hidden = () => `GET /v1/models HTTP/1.1\r\nHost: x\r\n${project()}\r\n`
const withBody = (framing: string, body = '{}') =>
  `POST /v1/messages/count_tokens HTTP/1.1\r\nHost: x\r\n${project()}` +
  `Content-Type: application/json\r\n${framing}\r\n\r\n${body}`
const chunked = (body: string) => withBody('Transfer-Encoding: chunked', body)
const lastChunk = '0\r\n\r\n'
const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, 'Host: a', ...headers, '', ''].join('\r\n')
const guarded = '/v1/organization/projects'
const models = (...headers: string[]) => get('/v1/models', ...headers)
/** A header line without its end. */
const key = () => project().trim()

const both = (...headers: string[]) => withBody(headers.join('\r\n'), lastChunk + hidden())
/** The credential is in the trailer only: the first one, in the head, is taken away. */
const trailed = () => chunked(`2\r\n{}\r\n0\r\n${project()}\r\n`).replace(project(), '')
const many = (count: number, last: string) => models(...Array<string>(count).fill('a: b'), last)

const lengths: Probe[] = [
  ['a length and chunks', 400, () => both('Content-Length: 4', 'Transfer-Encoding: chunked')],
  ['chunks and a length', 400, () => both('Transfer-Encoding: chunked', 'Content-Length: 4')],
  ['the same length twice', 400, () => withBody('Content-Length: 2\r\nContent-Length: 2')],
  ['two lengths', 400, () => withBody('Content-Length: 2\r\nContent-Length: 0')],
  ...['2, 2', '+2', '0x2', '-1', '99999999999999999999'].map((length): Probe => [
    `length ${length}`,
    400,
    () => withBody(`Content-Length: ${length}`),
  ]),
  ['a space before the colon', 400, () => withBody('Content-Length : 2')],
  ['a folded length', 400, () => withBody('X: b\r\n Content-Length: 2\r\nContent-Length: 2')],
  [
    'lines that end in LF',
    400,
    () => withBody('').replace(/\r\n\r\n\{\}$/, 'Content-Length: 2\n\n{}'),
  ],
  ['a CR in a header', 400, () => withBody('X: a\rContent-Length: 2')],
  ['a NUL in a header', 400, () => withBody('X: a\0b\r\nContent-Length: 2')],
]

const codings: Probe[] = [
  ...[' xchunked', ' identity', ' chunked, identity', '\x0bchunked'].map((coding): Probe => [
    `coding${JSON.stringify(coding)}`,
    400,
    () => withBody(`Transfer-Encoding:${coding}`, lastChunk + hidden()),
  ]),
  ['two codings', 400, () => both('Transfer-Encoding: chunked', 'Transfer-Encoding: identity')],
  [
    'gzip below chunks',
    400,
    () => withBody('Transfer-Encoding: gzip, chunked', `2\r\n{}\r\n${lastChunk}`),
  ],
  ['a long extension', 400, () => chunked(`2;${'a'.repeat(20_000)}\r\n{}\r\n${lastChunk}`)],
  ['a negative chunk', 400, () => chunked(`-2\r\n{}\r\n${lastChunk}`)],
  ['a chunk beyond 64 bits', 400, () => chunked(`FFFFFFFFFFFFFFFFF\r\n{}\r\n${lastChunk}`)],
  ['chunks that end in LF', 400, () => chunked(`2\n{}\n0\n\n${hidden()}`)],
  ['a space after the size', 400, () => chunked(`2 \r\n{}\r\n${lastChunk}`)],
  ['a credential in a trailer', 401, trailed],
  // Counted as a request of its own, it would be a second answer.
  [
    'a request as the body of a GET',
    200,
    () => models(key(), `Content-Length: ${hidden().length}`) + hidden(),
  ],
]
const routes: Probe[] = [
  ['another host in the URL, no credential', 401, () => get(`http://evil.example${guarded}`)],
  ['another host in the URL', 200, () => get('http://evil.example/v1/models', key())],
  ['two slashes', 404, () => get('//v1/models', key())],
  ['a path with dots', 404, () => get(`/health/..${guarded}`)],
  ['an encoded letter', 401, () => get('/v1/%6frganization/projects')],
  ['a semicolon', 404, () => get(`/health/live;${guarded}`)],
  ['capital letters', 404, () => get('/V1/organization/projects')],
  ['a slash at the end', 401, () => get(`${guarded}/`)],
  [
    'X-HTTP-Method-Override',
    401,
    () => get(guarded, 'X-HTTP-Method-Override: GET', 'Content-Length: 0').replace('GET', 'POST'),
  ],
  ['X-Original-URL', 200, () => get('/health/live', `X-Original-URL: ${guarded}`)],
  ['CONNECT', null, () => 'CONNECT 127.0.0.1:5432 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['TRACE', 405, () => get('/', key()).replace('GET', 'TRACE')],
]

const callers: Probe[] = [
  ['no host', 400, () => models(key()).replace('Host: a\r\n', '')],
  ['two hosts', 400, () => models('Host: b', key())],
  ['two credentials', 400, () => models('Authorization: Bearer x', key())],
  ['an administrator key in x-api-key', 401, () => get(guarded, `x-api-key: ${admin()}`)],
  ['2000 headers before the credential', 431, () => many(2000, key())],
  ['2100 headers before the credential', 431, () => many(2100, key())],
  ['2100 headers before a length', 431, () => `${many(2100, 'Content-Length: 5')}hello`],
  ['a header of 17 kB', 431, () => models(`X: ${'a'.repeat(17_000)}`)],
  ['a URL of 9 kB', 414, () => get(`/v1/models?${'a'.repeat(9000)}`, key())],
]

const versions: Probe[] = [
  [
    'an upgrade to WebSocket',
    200,
    () => models('Connection: Upgrade', 'Upgrade: websocket', key()),
  ],
  [
    'an upgrade to HTTP/2',
    401,
    () => models('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'),
  ],
  ['the preface of HTTP/2', 400, () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['HTTP/0.9', 400, () => 'GET /v1/models\r\n\r\n'],
  ['HTTP/1.2', 400, () => models(key()).replace('1.1', '1.2')],
  ['an expectation nobody knows', 422, () => withBody('Expect: 200-ok\r\nContent-Length: 2')],
]

const probes = [...lengths, ...codings, ...routes, ...callers, ...versions]
const answers = new Map<string, Exchange>()

// All at once, because most of them wait for a connection to stay silent. The highest tier has slots for them.
beforeAll(async () => {
  const { base_url } = stack().description
  await Promise.all(
    probes.map(async ([name, , bytes]) =>
      answers.set(name, await exchange(base_url, Buffer.from(bytes(), 'latin1'))),
    ),
  )
})

test.each(probes)('%s: %s', (name, expected) => {
  const { heads, text } = answers.get(name)!
  expect(heads, text).toEqual(expected === null ? [] : [`HTTP/1.1 ${expected}`])
})

test('no two probes have the same name', () => {
  expect(answers.size).toBe(probes.length)
})

test('100, then the answer: a sender that waits for permission', async () => {
  const bytes = withBody('Expect: 100-continue\r\nContent-Length: 2')
  const { heads } = await exchange(stack().description.base_url, bytes)
  expect(heads).toEqual(['HTTP/1.1 100', 'HTTP/1.1 422'])
})

test('what is hidden in other requests would be answered on its own', async () => {
  expect((await exchange(stack().description.base_url, hidden())).heads).toEqual(['HTTP/1.1 200'])
})
