import { endpoints } from '@gatehouse/contract/endpoints'
import { expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'

// There is no way in beside the contract.

test('every route serves an endpoint of the contract, and every endpoint has a route', async () => {
  const { routes } = await createTestApi()
  const served = routes
    .filter(({ method }) => method !== 'HEAD')
    .map(({ method, url, endpoint }) => {
      expect(endpoint, `${method} ${url} is not in the contract`).toBeDefined()
      expect([method, url]).toEqual([endpoint?.method, endpoint?.path])
      return endpoint?.id
    })
  expect(new Set(served)).toEqual(new Set(endpoints.map(({ id }) => id)))
})

test('an endpoint mounted without its guard refuses to work', async () => {
  const { bind } = await import('#http/bind.ts')
  const { createServer } = await import('#http/server.ts')
  const { house } = await createTestApi()
  const app = createServer({ ...house, trustedProxies: [], connectionsMax: 10 })
  const [endpoint] = endpoints.filter(({ id }) => id === 'listProjects')
  if (!endpoint) throw new Error('listProjects is gone')
  bind(app, endpoint, () => Promise.reject(new Error('reached')))
  const response = await app.inject({ method: 'GET', url: endpoint.path })
  expect(response.statusCode).toBe(500)
  expect(response.body).not.toContain('reached')
  await app.close()
})
