import { expect, test } from 'vitest'

import {
  type Dialect,
  dialects,
  errorBodies,
  type Failure,
  renderError,
  statusIn,
} from './error-body.ts'
import { type ErrorCode, errorCodes, errors } from './error.ts'

const failureOf = (code: ErrorCode, more: Partial<Failure> = {}): Failure => ({
  code,
  type: errors[code].type,
  status: errors[code].status,
  message: 'It did not work.',
  param: null,
  requestId: 'req_1',
  docUrl: null,
  ...more,
})

const policy = { policy_id: 'pol_1', version: 3, reason_code: 'DENYLIST' }
const violation = { loc: ['body', 'messages', 0], msg: 'Field required', type: 'missing', input: 1 }

test('the administration body names type, parameter, request and page', () => {
  const failure = failureOf('invalid_parameter', {
    param: 'query.limit',
    docUrl: 'https://docs.example/errors#invalid_parameter',
  })
  expect(renderError.admin(failure)).toStrictEqual({
    error: {
      code: 'invalid_parameter',
      message: 'It did not work.',
      type: 'validation_error',
      param: 'query.limit',
      request_id: 'req_1',
      doc_url: 'https://docs.example/errors#invalid_parameter',
    },
  })
})

test.each([
  ['invalid_request', 'invalid_request_error'],
  ['invalid_api_key', 'authentication_error'],
  ['insufficient_credits', 'permission_error'], // 402 has no type of its own there
  ['permission_denied', 'permission_error'],
  ['route_not_found', 'not_found_error'],
  ['request_too_large', 'request_too_large'],
  ['rate_limit_exceeded', 'rate_limit_error'],
  ['policy_blocked', 'invalid_request_error'],
  ['moderation_blocked', 'invalid_request_error'],
  ['policy_evaluation_unavailable', 'api_error'],
  ['internal_error', 'api_error'],
  ['upstream_error', 'api_error'],
  ['upstream_timeout', 'timeout_error'],
  ['overloaded', 'overloaded_error'],
] as const)('in the messages family %s has the type %s', (code, type) => {
  const body = {
    type: 'error',
    error: { type, message: 'It did not work.', code },
    request_id: 'req_1',
  }
  expect(renderError.messages(failureOf(code))).toStrictEqual(body)
  expect(renderError.count_tokens(failureOf(code))).toStrictEqual(body)
})

test.each([
  ['invalid_request', 'invalid_request_error'],
  ['invalid_api_key', 'invalid_request_error'],
  ['permission_denied', 'invalid_request_error'],
  ['route_not_found', 'invalid_request_error'],
  ['request_too_large', 'invalid_request_error'],
  ['insufficient_credits', 'insufficient_quota'],
  ['rate_limit_exceeded', 'rate_limit_error'],
  ['policy_evaluation_unavailable', 'server_error'],
  ['upstream_error', 'server_error'],
  ['overloaded', 'server_error'],
] as const)('in the OpenAI family %s has the type %s, and always four members', (code, type) => {
  expect(renderError.openai(failureOf(code))).toStrictEqual({
    error: { message: 'It did not work.', type, param: null, code },
  })
})

test('on responses a 429 is the object', () => {
  expect(renderError.responses(failureOf('rate_limit_exceeded'))).toStrictEqual({
    error: {
      message: 'It did not work.',
      type: 'rate_limit_error',
      param: null,
      code: 'rate_limit_exceeded',
    },
  })
})

test.each(errorCodes.filter((code) => errors[code].status !== 429))(
  'on responses %s is flat with exactly two members',
  (code) => {
    const body = renderError.responses(failureOf(code, { policy, param: 'body.model' }))
    expect(body).toStrictEqual({ error: 'It did not work.', code })
  },
)

test('a schema violation on count_tokens is a list of details and nothing else', () => {
  const failure = failureOf('invalid_parameter', { violations: [violation] })
  expect(renderError.count_tokens(failure)).toStrictEqual({ detail: [violation] })
})

test('other families do not print the details of count_tokens', () => {
  const failure = failureOf('invalid_parameter', { violations: [violation] })
  for (const dialect of ['admin', 'messages', 'responses', 'openai'] as const) {
    expect(JSON.stringify(renderError[dialect](failure))).not.toContain('Field required')
  }
})

test('the policy that refused the request stands beside the error, except in the flat body', () => {
  const failure = failureOf('policy_blocked', { policy })
  expect(renderError.messages(failure)).toMatchObject({ policy })
  expect(renderError.openai(failure)).toMatchObject({ policy })
  expect(renderError.responses(failure)).not.toHaveProperty('policy')
})

const everyPair = dialects.flatMap((dialect) => errorCodes.map((code) => [dialect, code] as const))

test.each(everyPair)('the %s body of %s has its declared members and no other', (dialect, code) => {
  const body = renderError[dialect](failureOf(code, { policy }))
  expect(errorBodies[dialect].parse(body)).toStrictEqual(body)
})

test.each([
  ['messages', 529],
  ['count_tokens', 529],
  ['admin', 503],
  ['responses', 503],
  ['openai', 503],
] satisfies [Dialect, number][])('the %s family answers an overload with %i', (dialect, status) => {
  expect(statusIn(dialect, 529)).toBe(status)
})

test('every other status is the same in every family', () => {
  const statuses = errorCodes.map((code) => errors[code].status).filter((status) => status !== 529)
  for (const dialect of dialects) {
    expect(statuses.map((status) => statusIn(dialect, status))).toEqual(statuses)
  }
})

test('details appear in the error of the messages families only', () => {
  const failure = failureOf('unsupported_parameter', { details: { error_code: 'x' } })
  for (const dialect of dialects) {
    const body = renderError[dialect](failure)
    const isTold = dialect === 'messages' || dialect === 'count_tokens'
    expect(JSON.stringify(body).includes('"details":{"error_code":"x"}')).toBe(isTold)
    expect(errorBodies[dialect].parse(body)).toEqual(body)
  }
})

test('a rejection keeps what the provider said, in every family; what it left out is ours', () => {
  const message = `prompt is too long: 5 > 4 ${'x'.repeat(400)}`
  const rejection = { status: 413, message, type: 'odd', code: 'too_long', param: 'messages' }
  const failure = failureOf('upstream_rejected', { status: 413, rejection })
  expect(renderError.messages(failure)).toStrictEqual({
    type: 'error',
    error: { type: 'odd', message, code: 'too_long' },
    request_id: 'req_1',
  })
  expect(renderError.openai(failure)).toStrictEqual({
    error: { message, type: 'odd', param: 'messages', code: 'too_long' },
  })
  expect(renderError.responses(failure)).toStrictEqual({ error: message, code: 'too_long' })

  const bare = { status: 413, message, type: null, code: null, param: null }
  const unnamed = failureOf('upstream_rejected', { status: 413, rejection: bare })
  expect(renderError.messages(unnamed).error).toStrictEqual({
    type: 'request_too_large',
    message,
    code: 'upstream_rejected',
  })
  expect(renderError.openai(unnamed).error).toStrictEqual({
    message,
    type: 'invalid_request_error',
    param: null,
    code: 'upstream_rejected',
  })
  expect(renderError.responses(unnamed)).toStrictEqual({
    error: message,
    code: 'upstream_rejected',
  })
})
