import type { FastifyInstance } from 'fastify'

import { type InForce, nobodysPolicies, type Pinned } from './in-force.ts'

/**
 * Gives every request of a guarded scope the policies it is judged by, for its whole life and for both
 * directions; the answer names their epoch, also when it is an error (G6.6). Comes after the guard.
 */
export function pinSnapshots(app: FastifyInstance, { pin }: Pick<InForce, 'pin'>) {
  app.decorateRequest('policies', null)
  app.addHook('onRequest', async (request, reply) => {
    const { principal } = request
    if (!principal) throw new Error('policies are pinned for callers that are known')
    request.policies =
      principal.kind === 'anonymous' ? nobodysPolicies : pin(principal.organizationId)
    void reply.header('x-policy-epoch', String(request.policies.snapshot.epoch))
  })
}

declare module 'fastify' {
  interface FastifyRequest {
    policies: Pinned | null
  }
}
