import type { CredentialKind, Endpoint } from '@gatehouse/contract/endpoint'
import { listProjects } from '@gatehouse/contract/project'
import type { FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'

import { ApiError } from '#platform/api-error.ts'

import { readCredential } from './credential.ts'
import { formatKey } from './secret.ts'

const adminKey = formatKey('gate_adm_', Buffer.alloc(32, 7))
const session = formatKey('gate_ses_', Buffer.alloc(32, 7))
const projectKey = formatKey('gate_prj_', Buffer.alloc(32, 7))
const token = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl'

const taking = (...credentials: CredentialKind[]): Endpoint => ({ ...listProjects, credentials })
const admin = taking('admin_key', 'session')
const inference = { ...taking('project_key', 'jwt'), path: '/v1/messages' } as const

/** The kind that was recognised, or the code of the refusal. */
function outcome(endpoint: Endpoint, headers: Record<string, string>): string {
  try {
    const { kind, text } = readCredential(endpoint, { headers } as unknown as FastifyRequest, null)
    const sent = `${headers['authorization'] ?? ''} ${headers['x-api-key'] ?? ''}`
    return sent.includes(text) ? kind : 'another text'
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error
    expect(error.headers['www-authenticate']).toMatch(/^Bearer realm="/)
    expect(error.message).not.toContain(adminKey)
    return error.code
  }
}

test.each([
  [admin, `Bearer ${adminKey}`, 'admin_key'],
  [admin, `bearer ${adminKey}`, 'admin_key'],
  [admin, `BEARER   ${adminKey}  `, 'admin_key'],
  [admin, `Bearer ${session}`, 'session'],
  [inference, `Bearer ${projectKey}`, 'project_key'],
  [inference, `Bearer ${token}`, 'jwt'],
] as const)('case %#: a credential of the right kind is recognised', (endpoint, header, kind) => {
  expect(outcome(endpoint, { authorization: header })).toBe(kind)
})

test.each([
  ['the wrong kind: a project key', admin, `Bearer ${projectKey}`],
  ['the wrong kind: a session', inference, `Bearer ${session}`],
  ['the wrong kind: a token', admin, `Bearer ${token}`],
  ['the wrong kind: an administrator key', inference, `Bearer ${adminKey}`],
  ['a mistyped key', admin, `Bearer ${adminKey.slice(0, -1)}x`],
  ['half a key', admin, `Bearer ${adminKey.slice(0, 30)}`],
  ['a prefix', admin, 'Bearer gate_adm_'],
  ['another prefix', admin, `Bearer ${adminKey.replace('gate', 'GATE')}`],
  ['a mistyped project key', inference, `Bearer ${projectKey}0`],
  ['nothing', admin, ''],
  ['a scheme alone', admin, 'Bearer'],
  ['a scheme and a space', admin, 'Bearer '],
  ['another scheme', admin, `Basic ${adminKey}`],
  ['no scheme', admin, adminKey],
  ['no space', admin, `Bearer${adminKey}`],
  ['a tab for a space', admin, `Bearer\t${adminKey}`],
  ['two credentials', admin, `Bearer ${adminKey} ${adminKey}`],
  ['a list', admin, `Bearer ${adminKey}, Bearer ${adminKey}`],
  ['two parts of a token', inference, 'Bearer a.b'],
  ['four parts', inference, 'Bearer a.b.c.d'],
  ['an empty part', inference, 'Bearer a..c'],
  ['an unsigned token', inference, 'Bearer a.b.'],
  ['a part that is not base64url', inference, 'Bearer a.b=.c'],
  ['a token without end', inference, `Bearer a.${'b'.repeat(8001)}.c`],
  ['SQL', admin, "Bearer ' or 1=1--"],
])('%s is invalid', (_, endpoint, header) => {
  expect(outcome(endpoint, { authorization: header })).toBe('invalid_api_key')
})

test('no header at all is a missing credential', () => {
  expect(outcome(admin, {})).toBe('missing_credentials')
  expect(outcome(inference, {})).toBe('missing_credentials')
})

test('x-api-key carries a project key', () => {
  expect(outcome(inference, { 'x-api-key': projectKey })).toBe('project_key')
})

test.each([
  ['a token', token],
  ['an administrator key', adminKey],
  ['a mistyped key', `${projectKey}0`],
  ['a scheme', `Bearer ${projectKey}`],
  ['nothing', ''],
])('x-api-key with %s is invalid', (_, text) => {
  expect(outcome(inference, { 'x-api-key': text })).toBe('invalid_api_key')
})

test('x-api-key is ignored where no project key is accepted', () => {
  const everyone = taking('admin_key', 'jwt')
  for (const text of [adminKey, projectKey, token]) {
    expect(outcome(admin, { 'x-api-key': text })).toBe('missing_credentials')
    expect(outcome(everyone, { 'x-api-key': text })).toBe('missing_credentials')
  }
})

test.each(['', 'Bearer', 'Basic x', `Bearer ${projectKey}0`, `Bearer ${adminKey}`])(
  'a wrong Authorization header is not replaced by x-api-key: %j',
  (authorization) => {
    const headers = { authorization, 'x-api-key': projectKey }
    expect(outcome(inference, headers)).toBe('invalid_api_key')
  },
)

test('with two good credentials the one in Authorization is used', () => {
  const headers = { authorization: `Bearer ${token}`, 'x-api-key': projectKey }
  expect(outcome(inference, headers)).toBe('jwt')
})

test('the refusal of an administrator key names the endpoint for administrators, if there is one', () => {
  const messageOf = (path: `/${string}`) => {
    try {
      const headers = { authorization: `Bearer ${adminKey}` }
      readCredential({ ...inference, path }, { headers } as unknown as FastifyRequest, null)
    } catch (error) {
      return error instanceof ApiError ? error.message : undefined
    }
    return undefined
  }
  expect(messageOf('/v1/models')).toMatch(
    /; administrator keys use GET \/v1\/organization\/models\.$/,
  )
  expect(messageOf('/v1/messages')).toMatch(/token of a configured issuer\.$/)
})
