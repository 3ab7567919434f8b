import { dirname } from 'node:path'

import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { listModels, listOrganizationModels } from '@gatehouse/contract/model'
import { expect, test } from 'vitest'

import { writeCatalogueOfOne } from '#testing/catalogue-of-one.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

async function prepare() {
  const MODELS_FILE = await writeCatalogueOfOne('http://127.0.0.1:9/v1')
  const environment = { MODELS_FILE, STATE_DIRECTORY: dirname(MODELS_FILE) }
  const api = await createTestApi({ environment })
  const { value: projectKey } = await createProjectKey(api.house, api.organization)
  return { ...api, projectKey }
}

test('200: an administrator key reads the list that project keys read', async () => {
  const { send, projectKey } = await prepare()
  const { status, body } = await send(listOrganizationModels)
  expect([status, body.data.map(({ id }) => id)]).toEqual([200, ['m']])
  expect(body).toEqual((await send(listModels, { credential: projectKey })).body)
})

test('200: without a catalogue the list is empty', async () => {
  const { send } = await createTestApi()
  const { status, body } = await send(listOrganizationModels)
  expect([status, body]).toEqual([
    200,
    { object: 'list', data: [], has_more: false, first_id: null, last_id: null },
  ])
})

test('401: a project key; and the 401 of GET /v1/models names the list for administrators', async () => {
  const { send, projectKey } = await prepare()
  const refused = await send(listOrganizationModels, { credential: projectKey })
  expect([refused.status, refused.body.error.code]).toEqual([401, 'invalid_api_key'])
  const { status, body } = await send(listModels)
  expect([status, body.error.code]).toEqual([401, 'invalid_api_key'])
  expect(body.error.message).toContain('administrator keys use GET /v1/organization/models.')
})

test('403: an administrator key without projects.read', async () => {
  const { send } = await prepare()
  const key = await send(createAdminApiKey, {
    body: { name: 'No projects', permissions: ['credits.read'] },
  })
  const { status, body } = await send(listOrganizationModels, { credential: key.body.value })
  expect([status, body.error.code]).toEqual([403, 'permission_denied'])
})

test('429: reading counts against the administration limits', async () => {
  const { send } = await createTestApi({ environment: { ADMIN_REQUESTS_PER_MINUTE: '2' } })
  const statuses = [1, 2, 3].map(async () => (await send(listOrganizationModels)).status)
  const refused = (await Promise.all(statuses)).filter((status) => status === 429)
  expect(refused).toHaveLength(1)
})
