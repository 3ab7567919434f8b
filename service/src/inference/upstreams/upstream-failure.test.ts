import { expect, test } from 'vitest'

import { toStatusFailure } from './upstream-failure.ts'

const told = { retryAfter: undefined, requestId: 'req_theirs' }
const complaint = { message: 'x'.repeat(1000), type: 'odd', code: 'too_long', param: 'input' }

test.each([400, 413, 422])('a %i keeps status, type, code and the whole message', (status) => {
  const { error, remedy, health } = toStatusFailure(status, complaint, told)
  expect([remedy, health]).toEqual(['final', 'good'])
  expect(error).toMatchObject({
    code: 'upstream_rejected',
    status,
    rejection: { ...complaint, status },
  })
  expect(error.headers).toEqual({
    'x-gatehouse-error': 'upstream_rejected',
    'x-upstream-request-id': 'req_theirs',
  })
})

test('another status of a refused request becomes 400', () => {
  const { error, remedy } = toStatusFailure(451, complaint, told)
  expect([error.status, error.rejection?.status, remedy]).toEqual([400, 400, 'final'])
})

test('a body that cannot be read leaves only the status', () => {
  const { error } = toStatusFailure(422, null, told)
  expect(error.rejection).toEqual({
    status: 422,
    message: 'The model provider refused the request with 422.',
    type: null,
    code: null,
    param: null,
  })
})

test.each([undefined, '', 'a b', 'a\r\nset-cookie: x', 'x'.repeat(201), 'é'])(
  'the id %j is no header',
  (requestId) => {
    const { error } = toStatusFailure(400, complaint, { retryAfter: undefined, requestId })
    expect(error.headers).not.toHaveProperty('x-upstream-request-id')
  },
)
