import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'

import { type GatewayInForce, isLimited } from '#gateway-config/compile-gateway.ts'
import { isProtectedIn } from '#gateway-config/decide/arm.ts'
import { armOfCall } from '#inference/configured/arm-of-call.ts'
import type { InferenceCall } from '#inference/inference-call.ts'
import type { Budget, Quota, QuotaRules } from '#limits/quotas/quota.ts'

/** The part of a call that decides its quotas and budgets. */
export type RuledCall = Pick<InferenceCall, 'principal' | 'policies' | 'policySubject' | 'target'>

/**
 * The quotas and budgets of a call: those of its organization's configuration, and the budgets of its project and key.
 * Null if there are none, as for most calls.
 */
export function quotaRulesOf(call: RuledCall): QuotaRules | null {
  const { principal, policies } = call
  const { gateway } = policies.snapshot
  // Anonymous callers belong to no organization that could have quotas or budgets.
  if ((!gateway && !principal.budgets) || principal.kind === 'anonymous') return null
  const configured = gateway ? quotasOf(gateway, call) : []
  // Drawing the arm costs a hash, and few configurations have quotas.
  const arm = gateway && configured.length > 0 ? armOfCall(gateway, call) : 'outside'
  const quotas = arm === 'outside' ? [] : configured
  const budgets = budgetsOf(call)
  if (quotas.length === 0 && budgets.length === 0) return null
  return {
    quotas,
    budgets,
    areQuotasEnforced: isProtectedIn(arm),
    policy: gateway && { id: gateway.config.policy_id, version: gateway.revision },
  }
}

function quotasOf(
  { config: { org_controls } }: GatewayInForce,
  { principal, policySubject }: RuledCall,
): Quota[] {
  const { user_quotas, user_quota, project_quota } = org_controls
  const { projectId } = principal
  return [
    ...(user_quotas
      ? [{ scope: 'user' as const, subject: policySubject.subject, ...user_quota }]
      : []),
    ...(projectId ? [{ scope: 'project' as const, subject: projectId, ...project_quota }] : []),
  ].filter(isLimited)
}

/** Budgets hold for every call in every arm of a rollout, because they are about money and not about behaviour. */
function budgetsOf({ principal, policies }: RuledCall): Budget[] {
  const { budgets, projectId, credentialId } = principal
  const own = policies.snapshot.gateway?.config.org_controls.monthly_budget
  return [
    ...(own ? [toBudget('organization', '', own)] : []),
    ...(budgets?.project && projectId ? [toBudget('project', projectId, budgets.project)] : []),
    ...(budgets?.key ? [toBudget('key', credentialId, budgets.key)] : []),
  ]
}

const toBudget = (scope: Budget['scope'], subject: string, given: MonthlyBudget): Budget => ({
  scope,
  subject,
  credits: given.credits,
  alertPercents: given.alert_percents,
  hasHardStop: given.hard_stop,
})
