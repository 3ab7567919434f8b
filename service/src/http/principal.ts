import type { CredentialKind } from '@gatehouse/contract/endpoint'
import type { Plan } from '@gatehouse/contract/limits'
import type { Permission } from '@gatehouse/contract/permission'

/** Who is calling, after authentication. */
export type Principal = {
  readonly kind: CredentialKind
  readonly organizationId: string
  /** The project a call belongs to; null for administrator keys. */
  readonly projectId: string | null
  /** The id of the key, or `iss|sub` of a token. Never the secret. */
  readonly credentialId: string
  readonly permissions: ReadonlySet<Permission>
  /** What decides the organization's tier: its plan, and what it has paid in all. */
  readonly plan: Plan
  readonly paidMicroUsd: number
}
