import type { Announce } from '#audit/announce.ts'
import type { MutationDeps } from '#http/bind-mutation.ts'

import type { RuleCheck } from './rule.ts'

/** What the endpoints of this folder depend on. */
export type PolicyDeps = MutationDeps & {
  announce: Announce
  checkRule: RuleCheck
  /** How many policies an organization may have. */
  policiesMax: number
}
