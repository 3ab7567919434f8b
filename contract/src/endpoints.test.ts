import { expect, test } from 'vitest'

import type { Endpoint } from './endpoint.ts'
import { dialectOfPath, endpoints, methodsAt, realmOfPath } from './endpoints.ts'
import { pages } from './pages/pages.ts'

const all: readonly Endpoint[] = endpoints

test('every id is used once', () => {
  const ids = all.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
})

test('no two endpoints match the same request', () => {
  const shapes = all.map(({ method, path }) => `${method} ${path.replaceAll(/:\w+/g, ':')}`)
  expect(new Set(shapes).size).toBe(shapes.length)
})

test.each(all)('$id: its path names exactly the parameters its schema checks', (endpoint) => {
  const named = [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name]) => name)
  expect(Object.keys(endpoint.params?.shape ?? {})).toEqual(named)
})

test('only seven endpoints are public', () => {
  const open = all.filter(({ permission }) => permission === null).map(({ path }) => path)
  expect(open.toSorted()).toEqual([
    '/',
    '/.well-known/gatehouse-audit-keys.json',
    '/.well-known/openapi.json',
    '/health/live',
    '/health/ready',
    '/openapi.json',
    '/v1/webhooks/stripe',
  ])
})

test('only pages of sign-in and the console are open besides, and no page is an endpoint', () => {
  expect(pages.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
    'GET /auth/:provider',
    'GET /auth/:provider/callback',
    'GET /auth/address-form.js',
    'GET /auth/device',
    'GET /auth/invitation',
    'GET /auth/link',
    'GET /auth/providers',
    'GET /auth/session',
    'GET /auth/sign_in',
    'GET /auth/style.css',
    'GET /console',
    'GET /console/*',
    'POST /auth/:provider/backchannel_logout',
    'POST /auth/device',
    'POST /auth/device/confirm',
    'POST /auth/device/token',
    'POST /auth/invitation',
    'POST /auth/key',
    'POST /auth/link',
    'POST /auth/sign_out',
  ])
  const paths = new Set(all.map(({ path }) => path))
  expect(pages.filter(({ path }) => paths.has(path))).toEqual([])
  const ids = [...all, ...pages].map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
})

test.each(all)('$id: it asks for a permission and a credential, or for neither', (endpoint) => {
  expect(endpoint.credentials.length > 0).toBe(endpoint.permission !== null)
})

test.each(all.filter(({ orProjectRole }) => orProjectRole))(
  '$id: a role in a project stands for a permission only where the path names the project, and people can call',
  ({ params, credentials }) => {
    expect(Object.keys(params?.shape ?? {})).toContain('project_id')
    expect(credentials).toContain('session')
  },
)

test.each(all.filter(({ orSelf }) => orSelf))(
  '$id: members need no permission only where the path names them, and people can call',
  ({ params, credentials }) => {
    expect(Object.keys(params?.shape ?? {})).toContain('member_id')
    expect(credentials).toContain('session')
  },
)

test('members look after nothing but their sessions without a permission', () => {
  const own = all.filter(({ orSelf }) => orSelf).map(({ path }) => path)
  expect(own.length).toBeGreaterThan(0)
  for (const path of own) expect(path).toContain('/members/:member_id/sessions')
})

test('what changes the whole project, or more than one, needs the permission', () => {
  const taking = all.filter(({ orProjectRole }) => orProjectRole).map(({ id }) => id)
  for (const id of ['listProjects', 'createProject', 'archiveProject']) {
    expect(taking).not.toContain(id)
  }
})

test.each(all)('$id: its error dialect is that of its path', ({ path, dialect }) => {
  expect(dialect).toBe(dialectOfPath(path))
})

/** The balance is read by the same callers, and is no call to a model. */
const isBalance = ({ path }: Endpoint) => path === '/v1/credits'

test.each(all.filter((endpoint) => endpoint.dialect !== 'admin' && !isBalance(endpoint)))(
  '$id: calling a model needs model.invoke and a project credential',
  ({ permission, credentials, isIdempotent }) => {
    expect([permission, credentials, isIdempotent]).toEqual([
      'model.invoke',
      ['project_key', 'jwt'],
      false,
    ])
  },
)

/** Stripe sends no keys: its events have ids of their own. */
const isWebhook = ({ path }: Endpoint) => path.startsWith('/v1/webhooks/')
const administration = all.filter(
  (endpoint) => endpoint.dialect === 'admin' && !isWebhook(endpoint),
)

/** A trial, the replay of a policy and the test of a sink change nothing. */
const isTrial = ({ path }: Endpoint) => /\/(evaluate|test)$|\/policies\/.*\/replay$/.test(path)
const withTexts = /\/(evaluate|examples)$|^\/api\/policy-gateway\//

test.each(administration.filter(({ method }) => method !== 'GET'))(
  '$id: if it changes something, it takes an Idempotency-Key',
  (endpoint) => {
    expect(endpoint.isIdempotent).toBe(!isTrial(endpoint))
    expect(endpoint.bodyLimitBytes).toBe(withTexts.test(endpoint.path) ? 262_144 : 65_536)
  },
)

/** The usage of everybody is for administrators, and approvals are for members. */
const ofAdministration = ['listGatewayQuotas', 'approveGatewayProposal']
const gateway = all.filter(
  ({ id, path }) => path.startsWith('/api/policy-gateway/') && !ofAdministration.includes(id),
)

test.each(gateway)('$id: the policy gateway takes every kind of credential', (endpoint) => {
  expect(endpoint.credentials).toEqual(['project_key', 'jwt', 'admin_key', 'session'])
  expect([endpoint.permission, endpoint.bodyLimitBytes]).toEqual([
    expect.stringMatching(/^(policy_gateway|exports)[.](read|write)$/) as string,
    262_144,
  ])
})

test.each([
  ['{}', false],
  ['{"persist":false}', false],
  ['{"persist":"true"}', false],
  ['{"persist":true}', true],
  ['[]', false],
  ['null', false],
])('a simulation of %s needs the permission to write: %s', (body, isNeeded) => {
  const simulate = all.find(({ id }) => id === 'simulateGateway')
  const needed = simulate?.furtherPermissions?.filter((each) => each.isNeeded(JSON.parse(body)))
  expect(needed?.map(({ permission }) => permission)).toEqual(
    isNeeded ? ['policy_gateway.write'] : [],
  )
})

test.each([
  ['/v1/messages', 'messages'],
  ['/v1/messages/', 'messages'],
  ['/v1/messages/batches', 'messages'],
  ['/policy/messages', 'messages'],
  ['/v1/messages/count_tokens', 'count_tokens'],
  ['/v1/messages/count_tokens/x', 'count_tokens'],
  ['/v1/messages/count_tokens2', 'messages'],
  ['/v1/responses', 'responses'],
  ['/v1/responses/resp_1/cancel', 'responses'],
  ['/v1/chat/completions', 'openai'],
  ['/v1/chat', 'admin'],
  ['/v1/credits', 'openai'],
  ['/v1/models/gpt', 'openai'],
  ['/policy/chat/completions', 'openai'],
  ['/v1/messagesx', 'admin'],
  ['/V1/messages', 'admin'],
  ['/x/v1/messages', 'admin'],
  ['/v1/organization/projects', 'admin'],
  ['/api/policy-gateway/config', 'admin'],
  ['/', 'admin'],
  ['', 'admin'],
] as const)('%s uses the dialect %s', (path, dialect) => {
  expect(dialectOfPath(path)).toBe(dialect)
})

test.each([
  ['/v1/organization', 'organization'],
  ['/v1/organization/projects', 'organization'],
  ['/v1/organizations', 'inference'],
  ['/api/policy-gateway/config', 'policy-gateway'],
  ['/api/policy-gateways', 'inference'],
  ['/v1/messages', 'inference'],
] as const)('%s belongs to the realm %s', (path, realm) => {
  expect(realmOfPath(path)).toBe(realm)
})

test.each([
  ['/v1/organization/projects', ['GET', 'POST']],
  ['/v1/organization/projects/proj_1', ['GET', 'PATCH']],
  ['/v1/organization/projects/proj_1/archive', ['POST']],
  ['/v1/organization/projects/proj_1/api_keys/key_1', ['DELETE', 'PATCH']],
  ['/v1/organization/projects/', []], // an empty id names nothing
  ['/v1/organization/projects//archive', []],
  ['/v1/organization/projects/proj_1/', []],
  ['/v1/organization/projects/a/b', []],
  ['/v1/organization', []],
  ['/health/live', ['GET']],
  ['', []],
])('%s has the methods %j', (path, methods) => {
  expect(methodsAt(path).toSorted()).toEqual(methods)
})

test.each(all)('$id: its own path has its method', ({ method, path }) => {
  expect(methodsAt(path.replaceAll(/:\w+/g, 'x'))).toContain(method)
})
