import type { Announce } from '#audit/announce.ts'
import type { MutationTools } from '#http/bind-mutation.ts'

import type { RuleCheck } from './rule.ts'

/** What the endpoints of this folder need. */
export type PolicyTools = MutationTools & {
  announce: Announce
  checkRule: RuleCheck
  /** How many policies an organization may have (G8.18). */
  policiesMax: number
}
