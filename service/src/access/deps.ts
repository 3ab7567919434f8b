import type { GlassDeps } from '#access/two-persons/require-proposal.ts'
import type { MutationDeps } from '#http/bind-mutation.ts'

import type { ModelIdOf } from './allowed-models/allowed-models.ts'
import type { FindOrganizationLimits } from './limit-overrides/change-limits.ts'
import type { FindOrganizationBudget } from './limit-overrides/organization-budget.ts'
import type { CountEarlierUsage } from './limit-overrides/own-budget.ts'
import type { HashKey } from './secret.ts'

/** What the endpoints of this folder depend on. */
export type AccessDeps = MutationDeps &
  GlassDeps & {
    hashKey: HashKey
    /** Where browsers find this gateway; undefined: there is no sign-in. */
    publicUrl: string | undefined
    findOrganizationLimits: FindOrganizationLimits
    findOrganizationBudget: FindOrganizationBudget
    countEarlierUsage: CountEarlierUsage
    modelIdOf: ModelIdOf
    /** How long a session lasts without a request. */
    sessionIdleMs: number
  }
