import { expect, test } from 'vitest'

import {
  defaultRetry,
  isConnectionFailure,
  isRetryable,
  readRetryAfter,
  waitBeforeRetry,
} from './retry.ts'

const now = Date.parse('2026-11-02T09:00:00Z')

test.each([
  ['0', 0],
  ['7', 7000],
  [' 120 ', 120_000],
  ['Mon, 02 Nov 2026 09:00:05 GMT', 5000],
  ['Monday, 02-Nov-26 09:00:05 GMT', 5000],
  ['Mon, 02 Nov 2026 08:59:00 GMT', 0],
])('Retry-After: %s is %i ms', (header, expected) => {
  expect(readRetryAfter(header, now)).toBe(expected)
})

test.each([null, '', 'soon', '-5', '1.5', '1e3', '2026-11-02T09:00:05Z', 'Mon, 99 Nov 2026 GMT'])(
  'Retry-After: %s says nothing',
  (header) => {
    expect(readRetryAfter(header, now)).toBeNull()
  },
)

test('a wait that was asked for is never shortened, and a little is added', () => {
  for (const random of [0, 0.5, 0.999]) {
    const waitMs = waitBeforeRetry({ attempt: 3, retryAfterMs: 2000 }, defaultRetry, random)
    expect(waitMs).toBe(2000 + random * defaultRetry.jitterMs)
  }
})

test('without one, waits double up to a limit, and differ between clients', () => {
  const waits = (random: number) =>
    [1, 2, 3, 4, 5, 6, 7].map((attempt) =>
      waitBeforeRetry({ attempt, retryAfterMs: null }, defaultRetry, random),
    )
  expect(waits(0)).toEqual([250, 500, 1000, 2000, 4000, 4000, 4000])
  expect(waits(1)).toEqual([500, 1000, 2000, 4000, 8000, 8000, 8000])
})

test.each([
  [429, 'rate_limit_exceeded', true],
  [503, 'dependency_unavailable', true],
  [529, 'overloaded', true],
  [409, 'idempotency_in_progress', true],
  [409, 'revision_conflict', false],
  [400, 'invalid_json', false],
  [402, 'insufficient_credits', false],
  [500, 'internal_error', false],
  [502, 'upstream_error', false],
])('%i %s: retried %s', (status, code, expected) => {
  expect(isRetryable(status, code)).toBe(expected)
})

const failed = (code: string) => new TypeError('fetch failed', { cause: { code } })
test.each([
  [failed('ECONNREFUSED'), true],
  [failed('UND_ERR_SOCKET'), true],
  [new TypeError('Failed to fetch'), true],
  [failed('CERT_HAS_EXPIRED'), false],
  [failed('ENOTFOUND'), false],
  [new TypeError('fetch failed', { cause: new Error('unexpected redirect') }), false],
  [new DOMException('The operation timed out', 'TimeoutError'), false],
  [new SyntaxError('Unexpected end of JSON input'), false],
  [undefined, false],
])('%s is a connection failure: %s', (error, expected) => {
  expect(isConnectionFailure(error)).toBe(expected)
})
