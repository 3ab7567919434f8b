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
import { asksForFreeRequest } from './free-tier/free-tier-header.ts'
import { createAnonymousPrincipal, type FreeCaller, type FreeTier } from './free-tier/free-tier.ts'
import type { createProjectCheck } from './named-project.ts'
import { requireStanding } from './projects/standing.ts'
import type { createSessionAuthentication } from './sessions/authenticate-session.ts'
import { type BrowserAccess, requireOwnPage } from './sessions/session-cookie.ts'
import { isAboutSelf, requireFurtherPermissions } from './unauthorized.ts'

/** Counts the call of an authenticated caller; returns the 429 if it exceeds a limit. */
export type CountCall = (
  request: FastifyRequest,
  reply: FastifyReply,
  principal: Principal,
) => Promise<ApiError | null>

export type Authentication = {
  byKey: ReturnType<typeof createKeyAuthentication>
  byJwt: ReturnType<typeof createJwtAuthentication>
  bySession: ReturnType<typeof createSessionAuthentication>
  /** How browsers reach this gateway; null: they cannot sign in. */
  browser: BrowserAccess | null
  /** Whether the operator lets sessions change nothing. */
  areSessionsReadOnly: boolean
  requireOwnProject: ReturnType<typeof createProjectCheck>
  /** Refused tokens by address. Unknown keys have stricter limits of their own. */
  refusedByAddress: FailedAttempts
}

/**
 * Authenticates and authorizes every call of a scope. The contract says which kinds of credential (401) and which
 * permission or role in the project (403) an endpoint needs; both are checked before the body is read.
 */
export function guard(app: FastifyInstance, authentication: Authentication, count?: CountCall) {
  identify(app, authentication)
  app.addHook('onRequest', async (request, reply) => {
    const { endpoint } = request.routeOptions.config
    const { principal } = request
    if (!endpoint || !principal) return
    // A call without the permission counts too, but its answer is 403, not 429.
    const refusal = await count?.(request, reply, principal)
    // What the path names need not exist.
    const { project_id, member_id } = request.params as Record<string, string | undefined>
    const isOwn = isAboutSelf(endpoint, principal, member_id)
    if (!isOwn) requireStanding(endpoint, principal, project_id)
    if (refusal) throw refusal
    // A person can always end sessions of their own.
    if (authentication.areSessionsReadOnly && !isOwn) refuseChange(endpoint, principal)
  })
  app.addHook('preHandler', (request, _, done) => {
    const { endpoint } = request.routeOptions.config
    const { principal } = request
    if (endpoint && principal) requireFurtherPermissions(endpoint, principal, request.body)
    done()
  })
}

/** What takes an Idempotency-Key is a change; trials, which take none, are not. */
function refuseChange({ isIdempotent }: Endpoint, { kind }: Principal) {
  if (kind !== 'session' || !isIdempotent) return
  throw new ApiError(
    'console_read_only',
    'The operator of this gateway lets sessions read only; make the change with an administrator key.',
  )
}

/**
 * Only authenticates: the route checks the permission itself, later. With a free tier it also admits
 * anonymous callers, whose free request the route claims once the request is known to be valid.
 */
export function identify(
  app: FastifyInstance,
  authentication: Authentication,
  freeTier?: Pick<FreeTier, 'identifyCaller'>,
) {
  app.decorateRequest('freeCaller', null)
  // With a callback: nearly every key is known, and then nothing has to be waited for.
  app.addHook('onRequest', (request, _, done) => {
    const { endpoint } = request.routeOptions.config
    if (!endpoint) throw new Error('a guarded route must serve an endpoint of the contract')
    if (endpoint.permission === null) return done()
    const found =
      freeTier && asksForFreeRequest(endpoint, request)
        ? identifyFree(endpoint, request, freeTier)
        : authenticate(endpoint, request, authentication)
    // Fastify waits for a promise, and calls the next hook itself.
    if (found instanceof Promise) return found.then((principal) => setPrincipal(request, principal))
    setPrincipal(request, found)
    return done()
  })
}

async function identifyFree(
  endpoint: Endpoint,
  request: FastifyRequest,
  { identifyCaller }: Pick<FreeTier, 'identifyCaller'>,
): Promise<Principal> {
  refuseLongBody(request)
  request.freeCaller = await identifyCaller(endpoint, readAddress(request))
  return createAnonymousPrincipal(request.freeCaller)
}

/** Runs before the body is read: anonymous callers must not fill the memory with large bodies. */
function refuseLongBody({ headers }: FastifyRequest) {
  const hasUnknownLength = headers['transfer-encoding'] !== undefined
  const bytes = Number(headers['content-length'] ?? 0)
  if (!hasUnknownLength && bytes <= freeBodyLimitBytes) return
  throw new ApiError(
    'request_too_large',
    `A free request must have a Content-Length of at most ${freeBodyLimitBytes} bytes.`,
  )
}

function setPrincipal(request: FastifyRequest, principal: Principal) {
  const { line } = request
  request.principal = principal
  line.credential_kind = principal.kind
  line.credential_id = principal.credentialId
  if (principal.kind !== 'anonymous') line.organization_id = principal.organizationId
  if (principal.projectId) line.project_id = principal.projectId
}

function authenticate(
  endpoint: Endpoint,
  request: FastifyRequest,
  authentication: Authentication,
): Principal | Promise<Principal> {
  const { browser } = authentication
  const credential = readCredential(endpoint, request, browser)
  const prefix = addressPrefix(readAddress(request))
  const project = request.headers['x-policy-project']
  const named = typeof project === 'string' ? project : undefined
  const { byKey, byJwt, bySession, requireOwnProject, refusedByAddress } = authentication
  if (credential.kind === 'session') {
    const form = credential.isCookie ? 'browser' : 'token'
    const found = bySession(endpoint, { text: credential.text, form }, prefix)
    if (!credential.isCookie || !browser) return found
    return Promise.resolve(found).then((principal) => {
      requireOwnPage(request, principal, browser)
      return principal
    })
  }
  if (credential.kind !== 'jwt') {
    const found = byKey(endpoint, credential, prefix)
    if (named === undefined) return found
    return Promise.resolve(found).then((key) => requireOwnProject(endpoint, key, named))
  }
  return byJwt(endpoint, credential.text, named).catch((error: unknown) => {
    // After the verification, which is local and cheap: a valid token is accepted from any address.
    const isRefusal = error instanceof ApiError && error.status === 401
    if (isRefusal) {
      refusedByAddress.refuseBlocked(prefix)
      refusedByAddress.note(prefix, digest(credential.text))
    }
    throw error
  })
}

/** The client address as the trusted proxies report it; an X-Forwarded-For of the client itself does not count. */
function readAddress(request: FastifyRequest): string {
  const address = request.ip as string | undefined
  // A client that has disconnected has no address any more, and reads no answer.
  if (address === undefined) throw new ApiError('invalid_request', 'The client disconnected.')
  return address
}

/** Different tokens have different digests: a client that repeats one expired token is not guessing. */
const digest = (text: string) => createHash('sha256').update(text).digest('base64')

declare module 'fastify' {
  interface FastifyRequest {
    /** The anonymous caller of a free request; null for every other caller. */
    freeCaller: FreeCaller | null
  }
}
