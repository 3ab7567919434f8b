import { expect, test } from 'vitest'

import { unknownRoute } from './unknown-route.ts'

test.each([
  '/messages',
  '/messages/count_tokens',
  '/chat/completions',
  '/responses',
  '/models',
  '/models/some-model',
])('404: %s lacks /v1, and the message names the right base URL', (path) => {
  expect(unknownRoute(path)).toMatchObject({
    status: 404,
    code: 'route_not_found',
    message: `The path '${path}' lacks '/v1': set the client's base URL to https://<host>/v1.`,
  })
})

test('404: an administration path that lacks /v1', () => {
  expect(unknownRoute('/organization/projects').message).toBe(
    "The path '/organization/projects' lacks '/v1': call '/v1/organization/projects'.",
  )
})

test.each(['/v1/v1/messages', '/v1/v1/messages/count_tokens', '/v1/v1/v1/messages'])(
  '404: %s has /v1 more than once, which the client adds itself',
  (path) => {
    expect(unknownRoute(path)).toMatchObject({
      status: 404,
      message: `The path '${path}' has '/v1' more than once: set the client's base URL to https://<host>, because the client adds '/v1' itself.`,
    })
  },
)

test.each(['/v1/v1/chat/completions', '/v1/v1/responses', '/v1/v1/models'])(
  '404: %s has /v1 more than once, and the base URL depends on the client',
  (path) => {
    expect(unknownRoute(path)).toMatchObject({
      status: 404,
      message: `The path '${path}' has '/v1' more than once: set the client's base URL to https://<host>/v1, or to https://<host> if the client adds '/v1' itself.`,
    })
  },
)

test.each([
  '/x',
  '/v2/messages',
  '/v1/v1',
  '/v1/v1/nothing',
  '/nothing',
  '//messages',
  '/V1/models',
])('404: %s is only unknown', (path) => {
  const { message, code } = unknownRoute(path)
  expect([code, message]).toEqual([
    'route_not_found',
    'There is no endpoint with this path; /openapi.json lists all endpoints.',
  ])
})

test('a long path is cut, so that the advice fits the message', () => {
  const { message } = unknownRoute(`/v1/v1/models/${'x'.repeat(8000)}`)
  expect(message.length).toBeLessThanOrEqual(300)
  expect(message).toMatch(/adds '\/v1' itself\.$/)
})

test('405: a known path with another method names the methods it has', () => {
  expect(unknownRoute('/v1/models')).toMatchObject({
    status: 405,
    message: 'This path can only be called with GET, HEAD.',
    headers: { allow: 'GET, HEAD' },
  })
})
