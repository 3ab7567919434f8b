import type { FastifyInstance } from 'fastify'

import { anonymousPolicies, type InForce, type Pinned } from './in-force.ts'

/**
 * Pins the snapshot that a request is evaluated by, from its start to its end and for both directions.
 * Every answer, also an error, names its epoch in `x-policy-epoch`, and says `allow` in `x-policy-decision` unless a
 * policy refuses it, which replaces the header. Must be registered after the guard.
 */
export function pinSnapshots(app: FastifyInstance, { pin }: Pick<InForce, 'pin'>) {
  app.decorateRequest('policies', null)
  app.addHook('onRequest', (request, reply, done) => {
    const { principal } = request
    if (!principal) throw new Error('policies are pinned for callers that are known')
    request.policies =
      principal.kind === 'anonymous' ? anonymousPolicies : pin(principal.organizationId)
    void reply.header('x-policy-epoch', String(request.policies.snapshot.epoch))
    void reply.header('x-policy-decision', 'allow')
    done()
  })
}

declare module 'fastify' {
  interface FastifyRequest {
    policies: Pinned | null
  }
}
