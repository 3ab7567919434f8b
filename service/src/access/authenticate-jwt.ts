import type { Endpoint } from '@gatehouse/contract/endpoint'
import { decodeJwt, errors, type JWTPayload, jwtVerify, type JWTVerifyGetKey } from 'jose'

import type { Principal } from '#http/principal.ts'
import { ApiError, dependencyUnavailable, notFound } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'

import type { Tenancy } from './credential-store.ts'
import { type Issuer, type IssuerTable, permissionsFrom } from './issuer-table.ts'
import { toOwnBudgets } from './limit-overrides/own-budget.ts'
import {
  findKnownTenancy,
  hasActiveProject,
  idMaxLength,
  type TenancyDeps,
} from './named-project.ts'
import { organizationSuspended, requirePermission, unauthorized } from './unauthorized.ts'

export type JwtDeps = TenancyDeps & {
  now: Clock
  issuers: IssuerTable
  /** Verification keys of an issuer, fetched when first needed. */
  keysOf: (issuer: Issuer) => JWTVerifyGetKey
}

/** The ids whose change makes a cached tenancy void. */
export const tenancyDependsOn = ({ organization_id, project_id }: Tenancy) =>
  project_id === null ? [organization_id] : [organization_id, project_id]

/** Authenticates tokens of the configured issuers. `namedProject` is the header X-Policy-Project. */
export function createJwtAuthentication(deps: JwtDeps) {
  const trusted = new Map(
    deps.issuers.map((issuer) => [issuer.issuer, { issuer, keys: deps.keysOf(issuer) }]),
  )
  return async (endpoint: Endpoint, token: string, namedProject?: string): Promise<Principal> => {
    const source = trusted.get(readIssuer(token) ?? '')
    if (!source) {
      throw unauthorized(
        endpoint,
        'invalid_token',
        'The issuer of the token is not configured in this gateway.',
      )
    }
    const { issuer, keys } = source
    const claims = await verify(token, issuer, keys, deps.now()).catch((error: unknown) => {
      throw toRefusal(error, endpoint)
    })
    const organizationId = textClaim(claims, issuer.organization_claim)
    const subject = textClaim(claims, 'sub')
    if (!organizationId || !subject || !issuer.organizations.includes(organizationId)) {
      throw unauthorized(
        endpoint,
        'invalid_token',
        `The token has no valid 'sub' or '${issuer.organization_claim}', or names an organization that its issuer may not use.`,
      )
    }
    const claimed = textClaim(claims, issuer.project_claim)
    // A malformed project claim must not fall back to the default project.
    if (!claimed && (claims[issuer.project_claim] ?? null) !== null) {
      throw unauthorized(
        endpoint,
        'invalid_token',
        `The claim '${issuer.project_claim}' of the token is not a valid project id.`,
      )
    }
    if (claimed && namedProject && claimed !== namedProject) {
      throw new ApiError(
        'wrong_project',
        'The header X-Policy-Project names another project than the token; remove the header.',
      )
    }
    const permissions = permissionsFrom(issuer, claims[issuer.permissions_claim])
    const projectId = claimed ?? namedProject ?? null
    // Before the lookup: a caller without the permission must not learn which projects exist.
    if (projectId) requirePermission(endpoint, { permissions })
    return {
      kind: 'jwt',
      organizationId,
      ...(await requireActiveProject(deps, endpoint, organizationId, projectId)),
      credentialId: `${issuer.issuer}|${subject}`,
      subject,
      userId: subject,
      isBoundToProject: claimed !== undefined,
      permissions,
      member: null,
      session: null,
    }
  }
}

/** The unverified `iss`: it only selects the keys that the signature is checked with. */
function readIssuer(token: string): string | undefined {
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

function toRefusal(error: unknown, endpoint: Endpoint): ApiError {
  if (error instanceof errors.JWTExpired) {
    return unauthorized(
      endpoint,
      'expired_token',
      'The token has expired; obtain a new one from its issuer.',
      error,
    )
  }
  const isIssuerUnavailable =
    !(error instanceof errors.JOSEError) ||
    error instanceof errors.JWKSTimeout ||
    error instanceof errors.JWKSInvalid
  if (isIssuerUnavailable) return dependencyUnavailable('issuer of the token', error)
  return unauthorized(
    endpoint,
    'invalid_token',
    'The token is not valid: its signature, its audience or one of its times was not accepted.',
    error,
  )
}

function textClaim(claims: JWTPayload, name: string): string | undefined {
  const value = claims[name]
  const isUsable = typeof value === 'string' && value !== '' && value.length <= idMaxLength
  return isUsable && value.isWellFormed() && !value.includes('\0') ? value : undefined
}

type TenancyOfPrincipal = Pick<
  Principal,
  | 'projectId'
  | 'projectName'
  | 'projectLabels'
  | 'plan'
  | 'paidMicroUsd'
  | 'limitOverrides'
  | 'budgets'
  | 'allowedModels'
>

/** The named project, or the default one. An unknown, foreign or archived project is 404. */
async function requireActiveProject(
  deps: JwtDeps,
  endpoint: Endpoint,
  organizationId: string,
  projectId: string | null,
): Promise<TenancyOfPrincipal> {
  const tenancy = await findKnownTenancy(deps, organizationId, projectId)
  if (!tenancy) {
    throw unauthorized(
      endpoint,
      'invalid_token',
      'The organization of the token does not exist in this gateway.',
    )
  }
  if (tenancy.organization_status === 'suspended') throw organizationSuspended()
  if (!hasActiveProject(tenancy)) throw notFound('project')
  return {
    projectId: tenancy.project_id,
    projectName: tenancy.project_name,
    projectLabels: tenancy.project_labels,
    plan: tenancy.plan,
    paidMicroUsd: Number(tenancy.paid_micro_usd),
    limitOverrides: tenancy.limit_overrides,
    budgets: toOwnBudgets(tenancy.project_budget, null),
    allowedModels: tenancy.allowed_models,
  }
}
