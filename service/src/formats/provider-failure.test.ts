import { expect, test } from 'vitest'

import { readComplaint, ProviderFailure, toProviderError } from './provider-failure.ts'

test.each([
  ['overloaded_error', 'overloaded'],
  ['server_is_overloaded', 'overloaded'],
  ['rate_limit_error', 'overloaded'],
  ['slow_down', 'overloaded'],
  ['too_many_requests', 'overloaded'],
  ['service_unavailable', 'overloaded'],
  [529, 'overloaded'],
  ['timeout_error', 'upstream_timeout'],
  ['request_timed_out', 'upstream_timeout'],
  [504, 'upstream_timeout'],
  ['invalid_request_error', 'upstream_rejected'],
  ['invalid_prompt', 'upstream_rejected'],
  ['context_length_exceeded', 'upstream_rejected'],
  ['server_error', 'upstream_error'],
  [5290, 'upstream_error'],
])('what a provider calls %s is %s, whether as type or as code', (word, code) => {
  const failure = { code, message: 'The model provider failed: No.' }
  const failed = (error: object) => toProviderError(readComplaint({ message: 'No.', ...error }))
  expect(failed({ type: word })).toMatchObject(failure)
  expect(failed({ code: word, type: 'error' })).toMatchObject(failure)
})

test('a provider that gives no reason has still failed', () => {
  const failure = { code: 'upstream_error', message: 'The model provider failed.' }
  expect(toProviderError(null)).toMatchObject(failure)
  expect(toProviderError(readComplaint({}))).toMatchObject(failure)
})

test("a rejection keeps the provider's word and not its sentence; other failures keep neither", () => {
  const { cause } = toProviderError(readComplaint({ code: 'invalid_prompt', message: 'canary' }))
  expect(cause).toBeInstanceOf(ProviderFailure)
  expect(cause).toMatchObject({ code: 'invalid_prompt' })
  expect(String(cause)).not.toContain('canary')
  expect(toProviderError(readComplaint({ code: 'server_error', message: 'canary' })).cause).toBe(
    undefined,
  )
})
