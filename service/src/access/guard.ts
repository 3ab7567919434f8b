import { createHash } from 'node:crypto'

import { type Endpoint, freeBodyLimitBytes } from '@gatehouse/contract/endpoint'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import { addressPrefix } from '#platform/client-address.ts'

import type { createJwtAuthentication } from './authenticate-jwt.ts'
import type { createKeyAuthentication } from './authenticate-key.ts'
import { readCredential } from './credential.ts'
import type { FailedAttempts } from './failed-attempts.ts'
import { asksForFreeRequest } from './free-tier-header.ts'
import { anonymousPrincipal, type FreeCaller, type FreeTier } from './free-tier.ts'
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
  /** Credentials that were refused, by address; unknown keys have stricter limits of their own. */
  refusedByAddress: FailedAttempts
}

/**
 * The one place where calls are let in. What an endpoint asks for stands in the contract: a kind of
 * credential (401), then a permission (403), both before the body is read or anything is looked up.
 */
export function guard(app: FastifyInstance, authentication: Authentication, count?: CountCall) {
  identify(app, authentication)
  app.addHook('onRequest', async (request, reply) => {
    const { endpoint } = request.routeOptions.config
    const { principal } = request
    if (!endpoint || !principal) return
    // Every attempt counts, also one that is refused; but why it is refused comes first (G4.1).
    const refusal = await count?.(request, reply, principal)
    requirePermission(endpoint, principal)
    if (refusal) throw refusal
  })
}

/**
 * Only finds out who is calling. Whoever uses this checks the permission itself, later; with a free tier
 * it also spends the request of an anonymous caller, once there is something to spend it on.
 */
export function identify(
  app: FastifyInstance,
  authentication: Authentication,
  freeTier?: Pick<FreeTier, 'callerOf'>,
) {
  app.decorateRequest('freeCaller', null)
  app.addHook('onRequest', async (request) => {
    const { endpoint } = request.routeOptions.config
    if (!endpoint) throw new Error('a guarded route must serve an endpoint of the contract')
    if (endpoint.permission === null) return
    if (freeTier && asksForFreeRequest(endpoint, request)) {
      refuseLongBody(request)
      request.freeCaller = await freeTier.callerOf(endpoint, addressOf(request))
      admit(request, anonymousPrincipal(request.freeCaller))
    } else admit(request, await authenticate(endpoint, request, authentication))
  })
}

/** Before a byte of it is kept: many of them would fill the memory, and nobody could be held to account. */
function refuseLongBody({ headers }: FastifyRequest) {
  const isOfUnknownLength = headers['transfer-encoding'] !== undefined
  const bytes = Number(headers['content-length'] ?? 0)
  if (!isOfUnknownLength && bytes <= freeBodyLimitBytes) return
  throw new ApiError(
    'request_too_large',
    `An anonymous request must say its length, and be at most ${freeBodyLimitBytes} bytes long.`,
  )
}

function admit(request: FastifyRequest, principal: Principal) {
  const { line } = request
  request.principal = principal
  line.credential_kind = principal.kind
  line.credential_id = principal.credentialId
  if (principal.kind !== 'anonymous') line.organization_id = principal.organizationId
  if (principal.projectId) line.project_id = principal.projectId
}

async function authenticate(
  endpoint: Endpoint,
  request: FastifyRequest,
  authentication: Authentication,
): Promise<Principal> {
  const credential = readCredential(endpoint, request)
  const prefix = addressPrefix(addressOf(request))
  if (credential.kind !== 'jwt') return authentication.byKey(endpoint, credential, prefix)
  const { byJwt, refusedByAddress } = authentication
  refusedByAddress.refuseBlocked(prefix)
  const project = request.headers['x-policy-project']
  const named = typeof project === 'string' ? project : undefined
  return byJwt(endpoint, credential.text, named).catch((error: unknown) => {
    const isRefusal = error instanceof ApiError && error.status === 401
    if (isRefusal) refusedByAddress.note(prefix, digestOf(credential.text))
    throw error
  })
}

/** The last hop that no trusted proxy vouches for: what a caller says about itself does not count. */
function addressOf(request: FastifyRequest): string {
  const address = request.ip as string | undefined
  // Whoever hung up has no address any more, and waits for no answer.
  if (address === undefined) throw new ApiError('invalid_request', 'The request was cut off.')
  return address
}

/** A client that repeats one expired token is not guessing; only different ones count. */
const digestOf = (text: string) => createHash('sha256').update(text).digest('base64')

declare module 'fastify' {
  interface FastifyRequest {
    /** Somebody anonymous who asks for the one free request; null for everybody else. */
    freeCaller: FreeCaller | null
  }
}
