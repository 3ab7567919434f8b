import { effectiveAction, type GatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import type { Simulation } from '@gatehouse/contract/policy-gateway/gateway'

import { type Arm, isEnforcedIn, isProtectedIn } from './arm.ts'
import { isAlwaysBlocked, isFlagged } from './categories.ts'
import type { TermHits } from './term-lists.ts'

export type Decision = Simulation['decision']

/** What is known of a request, an answer or a scenario. */
export type Facts = {
  readonly arm: Arm
  readonly exceededQuotas: ReadonlySet<'user' | 'project'>
  /** The terms of the lists that were found; null: there is no text, and the lists are passed over. */
  readonly terms: TermHits | null
  /** The categories that were found. */
  readonly categories: readonly string[]
}

export type GatewayOutcome = {
  /** What the configuration says, whether or not that is enforced. */
  readonly decision: Decision
  /** What happens. */
  readonly effectiveDecision: Decision
  readonly reasonCode: string
  readonly triggeredCategories: readonly string[]
  readonly terms: TermHits
}

const noTerms: TermHits = { allowlist: [], denylist: [] }

/**
 * What a configuration decides: the same for simulations and for calls. The first rule that fires decides, and all that
 * was found is reported (docs/specification/policy-gateway.md#evaluation-order). Outside of a rollout's sample, only the
 * categories count that are always blocked.
 */
export function decide(config: GatewayConfig, facts: Facts): GatewayOutcome {
  const isSampled = facts.arm !== 'outside'
  const terms = (isSampled && facts.terms) || noTerms
  const triggered = facts.categories.filter(
    (each) =>
      isAlwaysBlocked(each) || (isSampled && isFlagged(config.rules.flagged_categories, each)),
  )
  const isForbidden = triggered.some(isAlwaysBlocked)
  const quota = isSampled ? findExceeded(facts) : null
  const lacksTerm =
    isSampled &&
    facts.terms !== null &&
    config.rules.allowlist.length > 0 &&
    terms.allowlist.length === 0
  const isRefused = quota !== null || lacksTerm || isForbidden
  const isCaught = terms.denylist.length > 0 || triggered.length > 0
  const decision = isRefused ? 'refuse' : isCaught ? effectiveAction(config) : 'allow'
  const isEnforced = isEnforcedIn(facts.arm)
  const isOverQuota = quota !== null && isProtectedIn(facts.arm)
  return {
    decision,
    effectiveDecision: isForbidden || isOverQuota ? 'refuse' : isEnforced ? decision : 'allow',
    reasonCode: quota ?? reasonCodeFor(decision, config.rules.reason_codes),
    triggeredCategories: triggered,
    terms,
  }
}

function findExceeded({ exceededQuotas }: Facts): string | null {
  if (exceededQuotas.has('user')) return 'USER_QUOTA_EXCEEDED'
  return exceededQuotas.has('project') ? 'PROJECT_QUOTA_EXCEEDED' : null
}

/** The decision in capitals, or the first declared code that begins with it. */
function reasonCodeFor(decision: Decision, declared: readonly string[]): string {
  const usual = decision.toUpperCase()
  if (declared.includes(usual)) return usual
  return declared.find((code) => code.startsWith(usual)) ?? usual
}
