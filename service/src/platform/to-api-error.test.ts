import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { text } from 'node:stream/consumers'

import { expect, onTestFinished, test } from 'vitest'

import { ApiError } from './api-error.ts'
import { isStoreAway, toApiError } from './to-api-error.ts'

const coded = (code: string, message = 'secret detail') =>
  Object.assign(new Error(message), { code })

test.each([
  '08000', // connection exception
  '08006',
  '08P01',
  '53300', // too many connections
  '53100', // disk full
  '57P01', // shutdown by the administrator
  '57P02',
  '57P03', // starting up
  '57014', // statement timeout
  '58030', // input or output of the server
  '25P03', // idle in transaction for too long
  '25P04',
  '25006', // a primary that became a standby
  '28P01', // its password was changed
  '3D000',
  '55000', // it takes no connections
  '55P03', // lock timeout
  '40001',
  '40P01',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'ENOTFOUND',
  'EAI_AGAIN',
])('%s means that the database is away', (code) => {
  expect(isStoreAway(coded(code))).toBe(true)
})

test.each([
  '23505', // unique violation
  '23503',
  '22P02', // bad input
  '42601', // syntax
  '42P01', // no such table
  '25P02', // the transaction already failed
  '40002',
  '57000',
  '57014x',
  'ERR_INVALID_ARG_TYPE',
  'ENOENT',
  '',
])('%j does not mean that the database is away', (code) => {
  expect(isStoreAway(coded(code))).toBe(false)
})

test.each([
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'timeout exceeded when trying to connect',
  'Query read timeout',
  'Client has encountered a connection error and is not queryable',
  'Cannot use a pool after calling end on the pool',
])('the message "%s" of the driver means that the database is away', (message) => {
  expect(isStoreAway(new Error(message))).toBe(true)
})

test.each([
  new Error('column "Connection terminated" does not exist'),
  new Error(''),
  'Connection terminated',
  { code: 'ECONNREFUSED' },
  null,
  undefined,
  new AggregateError([]),
  new AggregateError([coded('23505'), 'ECONNREFUSED']),
])('case %#: anything else is not', (thrown) => {
  expect(isStoreAway(thrown)).toBe(false)
})

test('one lost address among several is enough', () => {
  const nested = new AggregateError([new AggregateError([coded('ECONNREFUSED')])])
  expect(isStoreAway(new AggregateError([coded('23505'), coded('ETIMEDOUT')]))).toBe(true)
  expect(isStoreAway(nested)).toBe(true)
})

test.each([
  ['FST_ERR_CTP_BODY_TOO_LARGE', 413, 'request_too_large'],
  ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', 400, 'invalid_request'],
  ['FST_ERR_BAD_URL', 400, 'invalid_request'],
  ['ERR_STREAM_PREMATURE_CLOSE', 400, 'invalid_request'],
  ['ECONNREFUSED', 503, 'dependency_unavailable'],
  ['57P01', 503, 'dependency_unavailable'],
  ['23505', 500, 'internal_error'],
  ['FST_ERR_NEVER_HEARD_OF', 500, 'internal_error'],
])('%s becomes %i %s, and its text stays inside', (code, status, answered) => {
  const thrown = coded(code)
  const error = toApiError(thrown)
  expect(error).toMatchObject({ status, code: answered, cause: thrown })
  expect(error.message).not.toContain('secret')
})

test.each([
  new Error('secret'),
  new TypeError('secret'),
  'secret',
  { message: 'secret', status: 418, code: 'secret' },
  null,
  undefined,
  7,
])('case %#: an unexpected error becomes a 500 without details', (thrown) => {
  const error = toApiError(thrown)
  expect(error).toMatchObject({ status: 500, code: 'internal_error', param: null, headers: {} })
  expect(error.message).toBe('The gateway failed unexpectedly.')
  expect(error.cause).toBe(thrown)
})

test('an error of ours is passed on as it is', () => {
  const error = new ApiError('invalid_cursor', 'No.')
  expect(toApiError(error)).toBe(error)
})

async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

test('a connection that the database resets is a 503, not an error of the caller', async () => {
  const port = await listen(createServer((socket) => socket.resetAndDestroy()))
  const socket = connect(port, '127.0.0.1')
  const [error] = (await once(socket, 'error').catch((thrown: unknown) => [thrown])) as [unknown]
  expect(error).toMatchObject({ code: 'ECONNRESET' })
  expect(toApiError(error)).toMatchObject({ status: 503, code: 'dependency_unavailable' })
})

test('a caller that hangs up while sending is a 400, not an outage', async () => {
  const failed = Promise.withResolvers<unknown>()
  const port = await listen(
    createHttpServer((request) => {
      socket.destroy()
      text(request).catch(failed.resolve)
    }),
  )
  const socket = connect(port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc')
  const error = await failed.promise
  expect(error).toMatchObject({ code: 'ECONNRESET' })
  expect(toApiError(error)).toMatchObject({ status: 400, code: 'invalid_request' })
})
