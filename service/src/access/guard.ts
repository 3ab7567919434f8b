import type { Endpoint } from '@gatehouse/contract/endpoint'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import { addressPrefix } from '#platform/client-address.ts'

import type { createJwtAuthentication } from './authenticate-jwt.ts'
import type { createKeyAuthentication } from './authenticate-key.ts'
import { readCredential } from './credential.ts'
import { requirePermission } from './unauthorized.ts'

/** Counts a call whose caller is known; returns why it may not go on, if a limit is reached. */
export type CountCall = (
  request: FastifyRequest,
  reply: FastifyReply,
  principal: Principal,
) => Promise<ApiError | null>

export type Authentication = {
  byKey: ReturnType<typeof createKeyAuthentication>
  byJwt: ReturnType<typeof createJwtAuthentication>
}

/**
 * The one place where calls are let in. What an endpoint asks for stands in the contract: a kind of
 * credential (401), then a permission (403), both before the body is read or anything is looked up.
 */
export function guard(app: FastifyInstance, authentication: Authentication, count?: CountCall) {
  app.addHook('onRequest', async (request, reply) => {
    const { endpoint } = request.routeOptions.config
    if (!endpoint) throw new Error('a guarded route must serve an endpoint of the contract')
    if (endpoint.permission === null) return
    const principal = await authenticate(endpoint, request, authentication)
    request.principal = principal
    request.line.credential_kind = principal.kind
    request.line.credential_id = principal.credentialId
    request.line.organization_id = principal.organizationId
    if (principal.projectId) request.line.project_id = principal.projectId
    // Every attempt counts, also one that is refused; but why it is refused comes first (G4.1).
    const refusal = await count?.(request, reply, principal)
    requirePermission(endpoint, principal)
    if (refusal) throw refusal
  })
}

async function authenticate(
  endpoint: Endpoint,
  request: FastifyRequest,
  { byKey, byJwt }: Authentication,
): Promise<Principal> {
  const credential = readCredential(endpoint, request)
  const address = request.ip as string | undefined
  // Whoever hung up has no address any more, and waits for no answer.
  if (address === undefined) throw new ApiError('invalid_request', 'The request was cut off.')
  if (credential.kind !== 'jwt') return byKey(endpoint, credential, addressPrefix(address))
  const project = request.headers['x-policy-project']
  return byJwt(endpoint, credential.text, typeof project === 'string' ? project : undefined)
}
