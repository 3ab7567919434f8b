import type { CredentialKind } from '@gatehouse/contract/endpoint'
import type { LimitOverrides, Plan } from '@gatehouse/contract/limits'
import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'
import type { Permission } from '@gatehouse/contract/permission'

/** The authenticated caller. Each anonymous caller has an organization id of its own, which is in no table. */
export type Principal = {
  readonly kind: CredentialKind | 'anonymous'
  readonly organizationId: string
  /** The project a call belongs to; null for administrator keys and anonymous callers. */
  readonly projectId: string | null
  /** The id of the key, `iss|sub` of a token, or a keyed hash of the address. Never the secret. */
  readonly credentialId: string
  /** For whom a call is made unless it says otherwise: the id of the key, or the `sub` of a token. */
  readonly subject: string
  /** Whether the credential itself is bound to the project. Otherwise the call named the project, or it is the default one. */
  readonly isBoundToProject: boolean
  readonly permissions: ReadonlySet<Permission>
  /** The organization's tier follows from its plan and from what it has paid in total. */
  readonly plan: Plan
  readonly paidMicroUsd: number
  /** Limits that hold instead of the tier's; null: none. */
  readonly limitOverrides: LimitOverrides | null
  /** The monthly budgets of its project and its key; null: there are none. */
  readonly budgets: OwnBudgets | null
}

export type OwnBudgets = {
  readonly project: MonthlyBudget | null
  readonly key: MonthlyBudget | null
}

/** The name whose share of memory, threads and upstreams a caller uses. All anonymous callers share one. */
export const shareOf = ({ kind, organizationId }: Principal): string =>
  kind === 'anonymous' ? 'anonymous' : organizationId
