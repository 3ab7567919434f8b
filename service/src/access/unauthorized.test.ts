import type { Endpoint } from '@gatehouse/contract/endpoint'
import { listProjects } from '@gatehouse/contract/project'
import { expect, test } from 'vitest'

import { organizationSuspended, permissionDenied, unauthorized } from './unauthorized.ts'

const at = (path: `/${string}`): Endpoint => ({ ...listProjects, path })

test('the challenge for a missing credential names the realm and nothing else', () => {
  const error = unauthorized(listProjects, 'missing_credentials', 'Send one.')
  expect(error).toMatchObject({ status: 401, code: 'missing_credentials', message: 'Send one.' })
  expect(error.headers).toEqual({ 'www-authenticate': 'Bearer realm="organization"' })
})

test.each([
  'invalid_api_key',
  'expired_api_key',
  'revoked_api_key',
  'invalid_token',
  'expired_token',
] as const)('%s: the challenge names the reason', (code) => {
  const error = unauthorized(listProjects, code, 'It is no good.')
  expect(error).toMatchObject({ status: 401, type: 'auth_error', code })
  expect(error.headers).toEqual({
    'www-authenticate':
      'Bearer realm="organization", error="invalid_token", error_description="It is no good."',
  })
})

test.each([
  ['/v1/organization/policies', 'organization'],
  ['/api/policy-gateway/config', 'policy-gateway'],
  ['/v1/messages', 'inference'],
  ['/v1/credits', 'inference'],
] as const)('%s belongs to the realm %s', (path, realm) => {
  const { headers } = unauthorized(at(path), 'missing_credentials', 'x')
  expect(headers['www-authenticate']).toBe(`Bearer realm="${realm}"`)
})

test('a quote in the reason does not end the quoted text', () => {
  const { headers } = unauthorized(listProjects, 'invalid_token', 'a "b" c')
  expect(headers['www-authenticate']).toMatch(/error_description="a 'b' c"$/)
})

test('a missing permission is named', () => {
  expect(permissionDenied('policies.write')).toMatchObject({
    status: 403,
    code: 'permission_denied',
    message: 'This credential lacks the permission policies.write.',
    headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="policies.write"' },
  })
  expect(permissionDenied('policies.write', 'Another reason.').message).toBe('Another reason.')
})

test('the cause of a refusal is kept for the log', () => {
  const cause = new Error('signature')
  expect(unauthorized(listProjects, 'invalid_token', 'No.', cause).cause).toBe(cause)
})

test('a suspended organization is 403, without a challenge', () => {
  expect(organizationSuspended()).toMatchObject({ status: 403, headers: {} })
})
