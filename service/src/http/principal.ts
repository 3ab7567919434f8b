import type { CredentialKind } from '@gatehouse/contract/endpoint'
import type { LimitOverrides, Plan } from '@gatehouse/contract/limits'
import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'
import type { Permission } from '@gatehouse/contract/permission'
import type { ProjectRole, Role } from '@gatehouse/contract/role'

/** The authenticated caller. Each anonymous caller has an organization id of its own, which is in no table. */
export type Principal = {
  readonly kind: CredentialKind | 'anonymous'
  readonly organizationId: string
  /** The project a call belongs to; null for administrator keys and anonymous callers. */
  readonly projectId: string | null
  /** Its name, for the events of calls; null also where a file that an earlier release has written does not say it. */
  readonly projectName: string | null
  /** The labels of the project; null: it has none. */
  readonly projectLabels: Readonly<Record<string, string>> | null
  /** The id of the key or of the member, `iss|sub` of a token, or a keyed hash of the address. Never the secret. */
  readonly credentialId: string
  /** For whom a call is made unless it says otherwise: the id of the key, or the `sub` of a token. */
  readonly subject: string
  /** Which person a call is made for: the `sub` of a token, or the member who owns the key; null: the credential does not say. */
  readonly userId: string | null
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
  /** The ids of the models that it may use; null: all of them. */
  readonly allowedModels: readonly string[] | null
  /** The person who acts through a session; null for all other callers. */
  readonly member: ActingMember | null
  /** The session that the call came with; null for all other credentials. */
  readonly session: ActingSession | null
}

/** The session of a member, or of a person who has signed in with an administrator key. */
type ActingSession = {
  readonly id: string
  /** What a page sends with each change to show that it is ours; null for sessions outside of browsers. */
  readonly csrfToken: string | null
}

/** A member who has signed in. */
export type ActingMember = {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly role: Role
  /** The projects that the member belongs to, and as what. */
  readonly projectRoles: ReadonlyMap<string, ProjectRole>
}

export type OwnBudgets = {
  readonly project: MonthlyBudget | null
  readonly key: MonthlyBudget | null
}

/** Whether the caller administers an organization. Such callers count apart from those who call models. */
export const isAdministrator = ({ kind }: Principal) => kind === 'admin_key' || kind === 'session'

/** The name whose share of memory, threads and upstreams a caller uses. All anonymous callers share one. */
export const shareOf = ({ kind, organizationId }: Principal): string =>
  kind === 'anonymous' ? 'anonymous' : organizationId
