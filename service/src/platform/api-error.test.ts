import { errorCodes, errors } from '@gatehouse/contract/error'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { ApiError, dependencyUnavailable, limitReached, notFound } from './api-error.ts'

const of = (status: number) => errorCodes.filter((code) => errors[code].status === status)

test.each(errorCodes)('%s has the status and the type of the catalogue', (code) => {
  const { status, type } = errors[code]
  expect(new ApiError(code, 'No.')).toMatchObject({ code, status, type, param: null })
})

test.each(of(409).filter((code) => code !== 'idempotency_in_progress'))(
  '%s has the header that keeps the SDKs from retrying',
  (code) => {
    expect(new ApiError(code, 'No.').headers).toEqual({ 'x-should-retry': 'false' })
  },
)

test('idempotency_in_progress may be retried after a second', () => {
  expect(new ApiError('idempotency_in_progress', 'No.').headers).toEqual({ 'retry-after': '1' })
})

// 529 is answered as 503 outside of the messages family.
test.each([429, 503, 529].flatMap(of))('%s says when to retry', (code) => {
  expect(new ApiError(code, 'No.').headers).toEqual({ 'retry-after': '1' })
})

test('upstream_rejected says where the words come from', () => {
  expect(new ApiError('upstream_rejected', 'No.').headers).toEqual({
    'x-gatehouse-error': 'upstream_rejected',
  })
})

const others = errorCodes.filter((code) => code !== 'upstream_rejected')
test.each(others.filter((code) => ![409, 429, 503, 529].includes(errors[code].status)))(
  '%s gives no advice about retrying',
  (code) => {
    expect(new ApiError(code, 'No.').headers).toEqual({})
  },
)

test('explicit headers win over the default advice', () => {
  const headers = { 'retry-after': '60', 'x-extra': 'y' }
  expect(new ApiError('rate_limit_exceeded', 'No.', { headers }).headers).toEqual(headers)
})

test('a message has at most 300 characters, whole ones', () => {
  const ending = fc.string({ unit: fc.constantFrom('a', '😀', '\ud83d', '\ude00'), minLength: 1 })
  fc.assert(
    fc.property(fc.integer({ min: 285, max: 300 }), ending, (length, end) => {
      const message = 'x'.repeat(length) + end
      const error = new ApiError('internal_error', message)
      expect(error.message.length).toBeLessThanOrEqual(300)
      expect(error.message.isWellFormed()).toBe(true)
      expect(message.toWellFormed().startsWith(error.message.slice(0, 299))).toBe(true)
    }),
  )
  expect(new ApiError('internal_error', 'x'.repeat(300)).message).toBe('x'.repeat(300))
  expect(new ApiError('internal_error', `${'x'.repeat(299)}😀`).message.isWellFormed()).toBe(true)
})

test('a parameter name that is half a character can still be printed and read', () => {
  const error = new ApiError('unknown_field', 'No.', { param: 'body.\ud800' })
  expect(error.param?.isWellFormed()).toBe(true)
})

test('the cause is kept for the log and is not part of the message', () => {
  const cause = new Error('secret')
  const error = dependencyUnavailable('database', cause)
  expect(error.cause).toBe(cause)
  expect(error.message).toBe('The database cannot be reached at the moment; retry later.')
  expect(error.headers).toEqual({ 'retry-after': '2' })
})

test('the message names what is missing or full', () => {
  expect(notFound('project')).toMatchObject({ status: 404, code: 'project_not_found' })
  expect(notFound('api_key')).toMatchObject({ status: 404, code: 'api_key_not_found' })
  expect(limitReached('projects', 100)).toMatchObject({
    status: 409,
    message: 'There can be at most 100 projects; remove one first.',
  })
})
