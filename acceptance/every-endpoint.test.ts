import type { CredentialKind, Endpoint, Method } from '@gatehouse/contract/endpoint'
import { endpoints, methodsAt, realmOfPath } from '@gatehouse/contract/endpoints'
import { exampleOf } from '@gatehouse/contract/examples/examples'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import type { z } from 'zod'

import { type Answer, call, codeOf, type Sent } from './support/call.ts'
import { valid } from './support/schema-arbitrary.ts'
import { prepareTenants, type Tenants } from './support/tenants.ts'
import { canary, useStack } from './support/use-stack.ts'

// The same guarantees for every endpoint of the contract; a new endpoint is tested without further work.

const stack = useStack()
let tenants: Tenants
beforeAll(async () => {
  tenants = await prepareTenants(stack())
})

type Guarded = Endpoint & { permission: NonNullable<Endpoint['permission']> }
const all: readonly Endpoint[] = endpoints
const guarded = all.filter((endpoint): endpoint is Guarded => endpoint.permission !== null)
const changing = guarded.filter(({ method }) => method !== 'GET')

const named = <E extends Endpoint>(list: readonly E[]) =>
  list.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const)

/** Sends a request that is valid except for the changes of the test. */
function send(endpoint: Endpoint, changes: Sent = {}): Promise<Answer> {
  const sample = (schema: z.ZodType, io?: 'output') =>
    fc.sample(valid(schema, io), { numRuns: 1, seed: 7 })[0]
  const body = endpoint.body && sample(endpoint.body)
  const needsQuery = endpoint.query?.safeParse({}).success === false
  return call(stack().description.base_url, endpoint, {
    credential: tenants.keysFor(endpoint).working,
    params: tenants.paramsOf(endpoint),
    ...(body !== undefined && { body }),
    ...(needsQuery && { query: exampleOf(endpoint)?.query ?? {} }),
    ...changes,
  })
}

/** Well-formed keys with a valid checksum that do not exist. */
const unknownKeys: Record<Exclude<CredentialKind, 'jwt'>, string> = {
  admin_key: `gate_adm_${'0'.repeat(43)}1BVBOF`,
  project_key: `gate_prj_${'0'.repeat(43)}2tvo1y`,
  session: `gate_ses_${'0'.repeat(43)}2kRiZw`,
}
const token = `eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.${canary}`

describe.each(named(guarded))('%s', (_, endpoint) => {
  test('401: no credential', async () => {
    const answer = await send(endpoint, { credential: undefined })
    expect([answer.status, codeOf(answer)]).toEqual([401, 'missing_credentials'])
    const realm = realmOfPath(endpoint.path)
    expect(answer.headers.get('www-authenticate')).toBe(`Bearer realm="${realm}"`)
  })

  test.each([
    ['another scheme', 'Basic dXNlcjpwYXNzd29yZA=='],
    ['no scheme', unknownKeys.admin_key],
    ['nothing after the scheme', 'Bearer '],
    ['a mistyped key', `Bearer ${unknownKeys.admin_key.slice(0, -1)}G`],
    ['a truncated key', `Bearer ${unknownKeys.admin_key.slice(0, 30)}`],
    ['text', `Bearer ${canary}`],
    ['an unknown key', `Bearer ${unknownKeys.admin_key}`],
    ['sql', `Bearer ' or 1=1 --`],
  ])('401: %s', async (_name, authorization) => {
    const answer = await send(endpoint, { credential: undefined, headers: { authorization } })
    expect([answer.status, codeOf(answer)]).toEqual([401, 'invalid_api_key'])
    expect(answer.headers.get('www-authenticate')).toContain('error="invalid_token"')
  })

  test('401: a credential of the wrong kind', async () => {
    const { admin_key } = tenants.owner
    const others = { admin_key, project_key: tenants.projectKey, jwt: token }
    for (const [kind, credential] of Object.entries(others)) {
      if (endpoint.credentials.some((each) => each === kind)) continue
      const answer = await send(endpoint, { credential })
      expect([kind, answer.status, codeOf(answer)]).toEqual([kind, 401, 'invalid_api_key'])
    }
  })

  test('401: a token without a signature', async () => {
    const answer = await send(endpoint, { credential: token })
    const takesTokens = endpoint.credentials.some((kind) => kind === 'jwt')
    const code = takesTokens ? 'invalid_token' : 'invalid_api_key'
    expect([answer.status, codeOf(answer)]).toEqual([401, code])
  })

  test('401: an unknown session', async () => {
    const answer = await send(endpoint, { credential: unknownKeys.session })
    const takesSessions = endpoint.credentials.some((kind) => kind === 'session')
    const code = takesSessions ? 'invalid_session' : 'invalid_api_key'
    expect([answer.status, codeOf(answer)]).toEqual([401, code])
  })

  test('401: an expired key', async () => {
    const answer = await send(endpoint, { credential: tenants.keysFor(endpoint).expired })
    expect([answer.status, codeOf(answer)]).toEqual([401, 'expired_api_key'])
  })

  test('401: a revoked key', async () => {
    const answer = await send(endpoint, { credential: tenants.keysFor(endpoint).revoked })
    expect([answer.status, codeOf(answer)]).toEqual([401, 'revoked_api_key'])
  })

  test('403: a suspended organization', async () => {
    const answer = await send(endpoint, { credential: tenants.keysFor(endpoint).suspended })
    expect([answer.status, codeOf(answer)]).toEqual([403, 'organization_suspended'])
  })

  const { permission, orPermission } = endpoint
  test.skipIf(permission === 'any')('403: all permissions but the one it needs', async () => {
    const lacking = [permission, orPermission?.permission]
    const credential = await tenants.keyWithout(endpoint, lacking)
    const answer = await send(endpoint, { credential })
    expect([answer.status, codeOf(answer)]).toEqual([403, 'permission_denied'])
    expect(answer.headers.get('www-authenticate')).toBe(
      `Bearer error="insufficient_scope", scope="${permission}"`,
    )
  })

  test('403: a key without permissions, even for an id of another organization', async () => {
    const answer = await send(endpoint, { credential: tenants.keysFor(endpoint).empty })
    const refusal = [403, 'permission_denied']
    expect([answer.status, codeOf(answer)]).toEqual(
      permission === 'any' ? [200, undefined] : refusal,
    )
  })

  test('another organization sees none of its data', async () => {
    const answer = await send(endpoint, { credential: tenants.keysFor(endpoint).foreign })
    const isTenantData = endpoint.params && endpoint.dialect === 'admin'
    // A key approves nothing, and is told so before anything is looked up.
    const status = endpoint.id.startsWith('approve') ? 403 : 404
    if (isTenantData) expect([answer.status, answer.text]).toEqual([status, answer.text])
    for (const id of Object.values(tenants.owner)) expect(answer.text).not.toContain(id)
  })

  test('the Host header does not change the answer', async () => {
    const plain = await send(endpoint, { credential: undefined })
    const odd = await send(endpoint, { credential: undefined, headers: { host: 'localhost' } })
    expect([odd.status, codeOf(odd)]).toEqual([plain.status, codeOf(plain)])
  })
})

/** Inference reports schema violations as 400; administration and count_tokens as 422. */
const statusOfWrongBody = ({ dialect }: Endpoint) =>
  dialect === 'admin' || dialect === 'count_tokens' ? 422 : 400

describe.each(named(changing))('%s', (_, endpoint) => {
  const tooLarge = `{"name":"${'x'.repeat(endpoint.bodyLimitBytes - 10)}"}`
  const fits = tooLarge.replace('xx', 'x').slice(0, -1)

  test('413: one byte over the limit, with and without Content-Length', async () => {
    expect(tooLarge.length).toBe(endpoint.bodyLimitBytes + 1)
    const announced = await send(endpoint, { raw: tooLarge })
    expect([announced.status, codeOf(announced)]).toEqual([413, 'request_too_large'])
    const chunked = await send(endpoint, { raw: new Blob([tooLarge]).stream() })
    expect([chunked.status, codeOf(chunked)]).toEqual([413, 'request_too_large'])
  })

  test('a body of exactly the limit is read', async () => {
    if (!endpoint.body) return
    const body = `${fits}}`
    expect(body.length).toBe(endpoint.bodyLimitBytes)
    expect((await send(endpoint, { raw: body })).status).toBe(statusOfWrongBody(endpoint))
  })

  test('the order of checks: 401, 403 (model callers: after the body), 413, 400, 422', async () => {
    const unknown = await send(endpoint, { credential: undefined, raw: tooLarge })
    expect(unknown.status).toBe(401)
    const { empty: credential } = tenants.keysFor(endpoint)
    // An attempt to call a model counts before its permission is checked, so its body is received first.
    const isCall = endpoint.dialect !== 'admin'
    expect((await send(endpoint, { credential, raw: tooLarge })).status).toBe(isCall ? 413 : 403)
    expect((await send(endpoint, { credential, raw: '{' })).status).toBe(403)
    expect((await send(endpoint, { raw: tooLarge.replace('{', '[') })).status).toBe(413)
    if (!endpoint.body) return
    expect(codeOf(await send(endpoint, { raw: '{' }))).toBe('invalid_json')
    const text = await send(endpoint, { raw: '{}', headers: { 'content-type': 'text/plain' } })
    expect(codeOf(text)).toBe('invalid_content_type')
    expect((await send(endpoint, { raw: '[]' })).status).toBe(statusOfWrongBody(endpoint))
    const unknownField = await send(endpoint, { body: { [canary]: 1 } })
    expect(unknownField.status).toBe(statusOfWrongBody(endpoint))
  })

  test('422: a malformed Idempotency-Key', async () => {
    if (!endpoint.isIdempotent) return
    const answer = await send(endpoint, { headers: { 'idempotency-key': 'a b' } })
    expect([answer.status, codeOf(answer)]).toEqual([422, 'invalid_parameter'])
    const { error } = answer.json as { error: { param: string } }
    expect(error.param).toBe('header.Idempotency-Key')
  })
})

describe.each(named(all))('%s', (_, endpoint) => {
  test('404 for a path below it, 405 for another method', async () => {
    const { base_url } = stack().description
    const sibling = { ...endpoint, path: `${endpoint.path}/there/is/nothing/here` as const }
    const missing = await call(base_url, sibling, { params: tenants.paramsOf(endpoint) })
    expect([missing.status, codeOf(missing)]).toEqual([404, 'route_not_found'])
    const path = endpoint.path.replaceAll(/:\w+/g, 'x')
    const taken = methodsAt(path)
    const others: readonly Method[] = ['PUT', 'DELETE', 'PATCH']
    const method = others.find((each) => !taken.includes(each)) ?? 'PUT'
    const response = await fetch(`${base_url}${path}`, { method })
    const { status, headers } = response
    const json: unknown = await response.json()
    expect([status, codeOf({ status, headers, json, text: '' })]).toEqual([
      405,
      'method_not_allowed',
    ])
    expect(headers.get('allow')?.split(', ')).toContain(endpoint.method)
  })
})

test('only these endpoints need no credential', async () => {
  const open = all.filter(({ permission }) => permission === null)
  expect(open.map(({ path }) => path)).toEqual([
    '/v1/webhooks/stripe',
    '/',
    '/openapi.json',
    '/.well-known/openapi.json',
    '/.well-known/gatehouse-audit-keys.json',
    '/health/live',
    '/health/ready',
  ])
  for (const endpoint of open) {
    const answer = await call(stack().description.base_url, endpoint, {
      ...(endpoint.body && { body: {} }),
    })
    const isWebhook = endpoint.body !== undefined
    expect([answer.status, isWebhook && codeOf(answer)]).toEqual(
      isWebhook ? [404, 'webhook_not_configured'] : [200, false],
    )
  }
})
