import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { readCredits } from '@gatehouse/contract/credits'
import { readOrganizationCredits } from '@gatehouse/contract/organization-credits'
import { expect, test, vi } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import { createDatabaseProxy, createProjectKey } from '#testing/test-gateway.ts'

/** An organization with 20 US dollars, of which it has used 5 and holds 1. */
async function prepare(environment: Record<string, string> = {}) {
  const api = await createTestApi({ environment })
  await api.house.db
    .updateTable('credit_account')
    .set({ posted: 15_000_000, used: 5_000_000, held: 1_000_000 })
    .where('organization_id', '=', api.organization.organizationId)
    .execute()
  const { value: projectKey } = await createProjectKey(api.house, api.organization)
  return { ...api, projectKey }
}

test('200: an administrator key reads the balance that project keys read', async () => {
  const { send, projectKey } = await prepare()
  const { status, body } = await send(readOrganizationCredits)
  expect([status, body]).toEqual([
    200,
    { data: { total_credits: 20, total_usage: 5, remaining_credits: 15_000_000 } },
  ])
  expect(body).toEqual((await send(readCredits, { credential: projectKey })).body)
})

test('200: every organization reads its own balance', async () => {
  const { send, house } = await prepare()
  const other = await createOrganization('Other Ltd', house)
  const { status, body } = await send(readOrganizationCredits, { credential: other.adminKey })
  const empty = { total_credits: 0, total_usage: 0, remaining_credits: 0 }
  expect([status, body]).toEqual([200, { data: empty }])
})

test('401: a project key; and the 401 of GET /v1/credits names the balance for administrators', async () => {
  const { send, projectKey } = await prepare()
  const refused = await send(readOrganizationCredits, { credential: projectKey })
  expect([refused.status, refused.body.error.code]).toEqual([401, 'invalid_api_key'])
  const { status, body } = await send(readCredits)
  expect([status, body.error.code]).toEqual([401, 'invalid_api_key'])
  expect(body.error.message).toContain('administrator keys use GET /v1/organization/credits.')
})

test('403: an administrator key without credits.read', async () => {
  const { send } = await prepare()
  const key = await send(createAdminApiKey, {
    body: { name: 'No credits', permissions: ['projects.read'] },
  })
  const { status, body } = await send(readOrganizationCredits, { credential: key.body.value })
  expect([status, body.error.code]).toEqual([403, 'permission_denied'])
})

test('503: the balance cannot be read', async () => {
  await using database = await createTestDatabase()
  await using proxy = await createDatabaseProxy(database.url)
  const { send, house } = await createTestApi({ environment: { DATABASE_URL: proxy.url } })
  const { adminKey } = await createOrganization('Example Ltd', house)
  // The first poll clears the caches.
  await vi.waitUntil(house.follower.lastPollAt, { timeout: 5000, interval: 5 })
  // Caches the key, but not the balance.
  await send(createAdminApiKey, { credential: adminKey, body: { name: 'Any', permissions: [] } })
  await proxy.shut()
  const { status, headers, body } = await send(readOrganizationCredits, { credential: adminKey })
  expect([status, body.error.code]).toEqual([503, 'credit_balance_unavailable'])
  expect(headers['retry-after']).toBe('2')
})
