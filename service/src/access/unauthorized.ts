import type { Endpoint } from '@gatehouse/contract/endpoint'
import { realmOfPath } from '@gatehouse/contract/endpoints'
import type { ErrorCode } from '@gatehouse/contract/error'
import type { Permission } from '@gatehouse/contract/permission'

import { ApiError } from '#platform/api-error.ts'

type AuthCode = Extract<
  ErrorCode,
  | 'missing_credentials'
  | 'invalid_api_key'
  | 'expired_api_key'
  | 'revoked_api_key'
  | 'invalid_token'
  | 'expired_token'
  | 'invalid_session'
  | 'free_request_used'
>

/** A 401 with a challenge that names the realm and, where a credential was sent, what is wrong with it. */
export function unauthorized(
  endpoint: Pick<Endpoint, 'path'>,
  code: AuthCode,
  message: string,
  cause?: unknown,
) {
  const realm = `Bearer realm="${realmOfPath(endpoint.path)}"`
  const hasCredential = code !== 'missing_credentials' && code !== 'free_request_used'
  const challenge = !hasCredential
    ? realm
    : `${realm}, error="invalid_token", error_description="${message.replaceAll('"', "'")}"`
  return new ApiError(code, message, { headers: { 'www-authenticate': challenge }, cause })
}

export function permissionDenied(permission: Permission, message?: string) {
  return new ApiError(
    'permission_denied',
    message ?? `This credential lacks the permission ${permission}.`,
    { headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${permission}"` } },
  )
}

/** A 403 for what no single permission allows. */
export const roleRequired = (message: string) =>
  new ApiError('permission_denied', message, {
    headers: { 'www-authenticate': 'Bearer error="insufficient_scope"' },
  })

/** Throws a 403 unless the caller has a permission that the contract names for the endpoint. */
export function requirePermission(
  { permission, orPermission }: Endpoint,
  { permissions }: { permissions: ReadonlySet<Permission> },
) {
  if (permission === null || permission === 'any' || permissions.has(permission)) return
  if (orPermission && permissions.has(orPermission.permission)) return
  throw permissionDenied(permission)
}

/** Whether the path names the calling member, and that is enough for the endpoint. */
export const isAboutSelf = (
  { orSelf }: Endpoint,
  { member }: { member: { id: string } | null },
  memberId: string | undefined,
) => orSelf === true && member !== null && member.id === memberId

/** Throws a 403 unless the caller has what the contract asks for besides, for a request with this body. */
export function requireFurtherPermissions(
  { furtherPermissions = [] }: Endpoint,
  { permissions }: { permissions: ReadonlySet<Permission> },
  body: unknown,
) {
  for (const { permission, isNeeded } of furtherPermissions) {
    if (isNeeded(body) && !permissions.has(permission)) throw permissionDenied(permission)
  }
}

export const organizationSuspended = () =>
  new ApiError(
    'organization_suspended',
    'The organization is suspended; the operator of this gateway can reinstate it.',
  )
