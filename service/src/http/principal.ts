import type { CredentialKind } from '@gatehouse/contract/endpoint'
import type { LimitOverrides, Plan } from '@gatehouse/contract/limits'
import type { Permission } from '@gatehouse/contract/permission'

/** The authenticated caller. Each anonymous caller has an organization id of its own, which is in no table. */
export type Principal = {
  readonly kind: CredentialKind | 'anonymous'
  readonly organizationId: string
  /** The project a call belongs to; null for administrator keys and anonymous callers. */
  readonly projectId: string | null
  /** The id of the key, `iss|sub` of a token, or a keyed hash of the address. Never the secret. */
  readonly credentialId: string
  readonly permissions: ReadonlySet<Permission>
  /** The organization's tier follows from its plan and from what it has paid in total. */
  readonly plan: Plan
  readonly paidMicroUsd: number
  /** Limits that hold instead of the tier's; null: none. */
  readonly limitOverrides: LimitOverrides | null
}

/** Whose share of memory, threads and upstreams a caller uses. All anonymous callers have that of one organization. */
export const shareOf = ({ kind, organizationId }: Principal): string =>
  kind === 'anonymous' ? 'anonymous' : organizationId
