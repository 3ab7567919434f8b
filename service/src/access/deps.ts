import type { Announce } from '#audit/announce.ts'
import type { MutationDeps } from '#http/bind-mutation.ts'

import type { FindOrganizationLimits } from './limit-overrides/change-limits.ts'
import type { CountEarlierUsage } from './limit-overrides/own-budget.ts'
import type { HashKey } from './secret.ts'

/** What the endpoints of this folder depend on. */
export type AccessDeps = MutationDeps & {
  announce: Announce
  hashKey: HashKey
  findOrganizationLimits: FindOrganizationLimits
  countEarlierUsage: CountEarlierUsage
}
