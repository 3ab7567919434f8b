import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'

import type { Principal } from '#http/principal.ts'

import { createInForce } from './in-force.ts'
import { pinSnapshots } from './pin-snapshot.ts'

const caller = (kind: Principal['kind'], organizationId: string): Principal => ({
  kind,
  organizationId,
  projectId: null,
  credentialId: 'someone',
  subject: 'someone',
  userId: null,
  projectName: null,
  isBoundToProject: false,
  permissions: new Set(),
  plan: 'free',
  paidMicroUsd: 0,
  limitOverrides: null,
  budgets: null,
  allowedModels: null,
  projectLabels: null,
  member: null,
  session: null,
})

/** What a request of this caller is judged by while nothing is known of any organization. */
async function pinnedFor(principal: Principal) {
  const app = Fastify()
  onTestFinished(() => app.close())
  app.decorateRequest('principal', null)
  app.addHook('onRequest', async (request) => {
    request.principal = principal
  })
  const inForce = createInForce({ now: () => new Date() })
  pinSnapshots(app, inForce)
  app.get('/', async ({ policies }) => policies)
  const response = await app.inject({ url: '/' })
  return { ...response, status: response.statusCode, known: inForce.all() }
}

test('no policies apply to an anonymous caller', async () => {
  const pinned = await pinnedFor(caller('anonymous', 'anonymous_1'))
  expect(pinned.status).toBe(200)
  expect(pinned.headers).toMatchObject({ 'x-policy-epoch': '0', 'x-policy-decision': 'allow' })
  expect(JSON.parse(pinned.payload)).toEqual({
    snapshot: {
      organizationId: 'anonymous',
      epoch: 0,
      policies: [],
      gateway: null,
      guardrails: [],
    },
    isStale: false,
    isRolledBack: false,
  })
  expect(pinned.known).toEqual([])
})

test('a caller of an organization is refused until its policies are known', async () => {
  const pinned = await pinnedFor(caller('project_key', 'org_1'))
  expect(pinned.status).toBe(503)
  expect(pinned.payload).toContain('cannot be loaded')
})
