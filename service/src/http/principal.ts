import type { CredentialKind } from '@gatehouse/contract/endpoint'
import type { Plan } from '@gatehouse/contract/limits'
import type { Permission } from '@gatehouse/contract/permission'

/** Who is calling, after authentication. Somebody anonymous is an organization of their own, which no table knows. */
export type Principal = {
  readonly kind: CredentialKind | 'anonymous'
  readonly organizationId: string
  /** The project a call belongs to; null for administrator keys and anonymous callers. */
  readonly projectId: string | null
  /** The id of the key, `iss|sub` of a token, or a keyed hash of the address. Never the secret. */
  readonly credentialId: string
  readonly permissions: ReadonlySet<Permission>
  /** What decides the organization's tier: its plan, and what it has paid in all. */
  readonly plan: Plan
  readonly paidMicroUsd: number
}
