import type { Endpoint } from '@gatehouse/contract/endpoint'
import { decodeJwt, errors, type JWTPayload, jwtVerify, type JWTVerifyGetKey } from 'jose'

import type { Principal } from '#http/principal.ts'
import { ApiError, dependencyUnavailable, notFound } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { findStanding, type Standing } from './credential-store.ts'
import { type Issuer, type IssuerTable, permissionsFrom } from './issuer-table.ts'
import type { LookupCache } from './lookup-cache.ts'
import { organizationSuspended, requirePermission, unauthorized } from './unauthorized.ts'

type StandingCache = LookupCache<Standing>

export type JwtTools = {
  db: Db
  now: Clock
  issuers: IssuerTable
  keysOf: (issuer: Issuer) => JWTVerifyGetKey
  standings: StandingCache
}

export const standingDependsOn = ({ organization_id, project_id }: Standing) =>
  project_id === null ? [organization_id] : [organization_id, project_id]

const claimMaxLength = 200

/** Recognises a token of a configured issuer. `namedProject` is the header X-Policy-Project. */
export function createJwtAuthentication(tools: JwtTools) {
  const trusted = new Map(
    tools.issuers.map((issuer) => [issuer.issuer, { issuer, keys: tools.keysOf(issuer) }]),
  )
  return async (endpoint: Endpoint, token: string, namedProject?: string): Promise<Principal> => {
    const source = trusted.get(issuerNamedBy(token) ?? '')
    if (!source) throw unauthorized(endpoint, 'invalid_token', 'The issuer is not known here.')
    const { issuer, keys } = source
    const claims = await verify(token, issuer, keys, tools.now()).catch((error: unknown) => {
      throw refusalOf(error, endpoint)
    })
    const organizationId = textClaim(claims, issuer.organization_claim)
    const subject = textClaim(claims, 'sub')
    if (!organizationId || !subject || !issuer.organizations.includes(organizationId)) {
      throw unauthorized(endpoint, 'invalid_token', 'The token lacks a claim this issuer must set.')
    }
    const claimed = textClaim(claims, issuer.project_claim)
    // A project that cannot be read must not turn into the default one.
    if (!claimed && (claims[issuer.project_claim] ?? null) !== null) {
      throw unauthorized(endpoint, 'invalid_token', 'The project of the token is not valid.')
    }
    if (claimed && namedProject && claimed !== namedProject) {
      throw new ApiError('wrong_project', 'The token belongs to another project.')
    }
    const permissions = permissionsFrom(issuer, claims[issuer.permissions_claim])
    const projectId = claimed ?? namedProject ?? null
    // Before the lookup: without the permission nobody learns which projects exist (G5.12).
    if (projectId) requirePermission(endpoint, { permissions })
    return {
      kind: 'jwt',
      organizationId,
      ...(await findPlace(tools, endpoint, organizationId, projectId)),
      credentialId: `${issuer.issuer}|${subject}`,
      permissions,
    }
  }
}

/** Only chooses whose keys to check with; nothing is believed before the signature is. */
function issuerNamedBy(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

async function verify(token: string, issuer: Issuer, keys: JWTVerifyGetKey, now: Date) {
  const { payload } = await jwtVerify(token, keys, {
    issuer: issuer.issuer,
    audience: issuer.audience,
    algorithms: issuer.algorithms,
    typ: issuer.type,
    requiredClaims: ['sub', 'exp', 'iat', issuer.organization_claim],
    clockTolerance: 30,
    maxTokenAge: '24h',
    currentDate: now,
  })
  return payload
}

function refusalOf(error: unknown, endpoint: Endpoint): ApiError {
  if (error instanceof errors.JWTExpired) {
    return unauthorized(endpoint, 'expired_token', 'The token has expired.', error)
  }
  const isOurTrouble =
    !(error instanceof errors.JOSEError) ||
    error instanceof errors.JWKSTimeout ||
    error instanceof errors.JWKSInvalid
  if (isOurTrouble) return dependencyUnavailable('issuer of the token', error)
  return unauthorized(endpoint, 'invalid_token', 'The token is not valid.', error)
}

function textClaim(claims: JWTPayload, name: string): string | undefined {
  const value = claims[name]
  const isUsable = typeof value === 'string' && value !== '' && value.length <= claimMaxLength
  return isUsable && value.isWellFormed() && !value.includes('\0') ? value : undefined
}

/** A project outside the organization is not found (G5.4); an archived one no longer takes calls. */
async function findPlace(
  { db, standings }: JwtTools,
  endpoint: Endpoint,
  organizationId: string,
  projectId: string | null,
): Promise<Pick<Principal, 'projectId' | 'plan' | 'paidMicroUsd'>> {
  // A header may be 16 KiB long: what cannot be an id is neither looked up nor remembered.
  if (projectId !== null && projectId.length > claimMaxLength) throw notFound('project')
  const key = JSON.stringify([organizationId, projectId])
  const remembered = standings.peek(key)
  const standing =
    remembered === undefined
      ? await standings.get(key, () => findStanding(db, organizationId, projectId))
      : remembered
  if (!standing) {
    throw unauthorized(endpoint, 'invalid_token', 'The organization is not known here.')
  }
  if (standing.organization_status === 'suspended') throw organizationSuspended()
  if (!standing.project_id || standing.project_status === 'archived') throw notFound('project')
  return {
    projectId: standing.project_id,
    plan: standing.plan,
    paidMicroUsd: Number(standing.paid_micro_usd),
  }
}
