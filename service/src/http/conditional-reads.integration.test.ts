import { createAdminApiKey } from '@gatehouse/contract/api-key'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { readMe } from '@gatehouse/contract/members/me'
import { createPolicy } from '@gatehouse/contract/policy'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'

// What pages poll costs no body while nothing has changed.

const all: readonly Endpoint[] = endpoints
const conditional = all.filter(({ isConditional }) => isConditional)

type Api = Awaited<ReturnType<typeof createTestApi>>
const read = (
  { app, organization }: Api,
  url: string,
  headers: Record<string, string> = {},
  credential = organization.adminKey,
) => app.inject({ url, headers: { authorization: `Bearer ${credential}`, ...headers } })

test('304 without a body while the answer is the same, 200 once it is another', async () => {
  const api = await createTestApi()
  const policy = { name: 'P', rule: 'text.contains("x")', direction: 'request' }
  const { id } = (await api.send(createPolicy, { body: policy })).body
  expect(conditional.length).toBeGreaterThanOrEqual(8)
  for (const { path } of conditional) {
    const url = path.replace('{policy_id}', id).replace(':policy_id', id)
    const first = await read(api, url)
    // A configuration of the gateway, which there is none of, has no rollout.
    if (first.statusCode === 404) continue
    const { etag } = first.headers
    expect([path, first.statusCode]).toEqual([path, 200])
    expect(etag).toMatch(/^"[\w-]{22}"$/)
    if (path.endsWith('/limits')) continue // each reading of it counts as a request
    const again = await read(api, url, { 'if-none-match': `"other", ${etag}` })
    expect([path, again.statusCode, again.body]).toEqual([path, 304, ''])
    expect([again.headers.etag, again.headers['cache-control']]).toEqual([etag, 'no-store'])
    expect((await read(api, url, { 'if-none-match': '"other"' })).statusCode).toBe(200)
  }
  const { etag } = (await read(api, readMe.path)).headers
  await sql`update organization set name = 'Renamed'`.execute(api.db)
  const changed = await read(api, readMe.path, { 'if-none-match': String(etag) })
  expect(changed.statusCode).toBe(200)
})

test('a tag opens nothing: 401 and 403 come first', async () => {
  const api = await createTestApi()
  const body = { name: 'Narrow', permissions: ['credits.read'] }
  const { value } = (await api.send(createAdminApiKey, { body })).body
  const any = { 'if-none-match': '*' }
  expect((await read(api, '/v1/organization/policies', any, value)).statusCode).toBe(403)
  expect((await read(api, '/v1/organization/policies', any, 'none')).statusCode).toBe(401)
  expect((await read(api, '/v1/organization/policies?limit=0', any)).statusCode).toBe(422)
})
