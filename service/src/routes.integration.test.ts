import { endpoints } from '@gatehouse/contract/endpoints'
import { pages } from '@gatehouse/contract/pages/pages'
import { expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'

// Only endpoints and pages of the contract are served.

test('every route serves an endpoint or a page of the contract, and each of them has a route', async () => {
  const { routes } = await createTestApi()
  const served = routes
    .filter(({ method }) => method !== 'HEAD')
    .map(({ method, url, endpoint, page }) => {
      const entry = endpoint ?? page
      expect(entry, `${method} ${url} is not in the contract`).toBeDefined()
      expect([method, url]).toEqual([entry?.method, entry?.path])
      return entry?.id
    })
  expect(new Set(served)).toEqual(new Set([...endpoints, ...pages].map(({ id }) => id)))
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

test.each([
  ['/messages', "lacks '/v1'"],
  ['/v1/v1/messages', "has '/v1' more than once"],
])('404: a call to %s says what is wrong with the base URL', async (url, explanation) => {
  const { app } = await createTestApi()
  const response = await app.inject({ method: 'POST', url, payload: { model: 'm' } })
  expect(response.statusCode).toBe(404)
  expect(response.json()).toMatchObject({
    error: { code: 'route_not_found', message: expect.stringContaining(explanation) as string },
  })
})
