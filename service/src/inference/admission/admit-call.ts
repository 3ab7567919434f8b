import type { NoteBudgets } from '#credits/budgets/budget-alerts.ts'
import type { Principal } from '#http/principal.ts'
import { worstCaseOf } from '#inference/bill.ts'
import type { CallOrigin } from '#inference/call-event.ts'
import { openConfigured } from '#inference/configured/configured-call.ts'
import type { InferenceCall } from '#inference/inference-call.ts'
import type { Meter } from '#inference/metering/meter.ts'
import { usedTokens } from '#inference/metering/used-tokens.ts'
import type { ModelRequest } from '#inference/model-request.ts'
import type { RecordRefusal } from '#inference/record-call.ts'
import type { CallSlot } from '#inference/run-inference.ts'
import type { InferenceAdmission } from '#limits/limit-inference-calls.ts'
import { budgetUsages, toCountedQuotas } from '#limits/quotas/counted-quotas.ts'
import type { QuotaRules } from '#limits/quotas/quota.ts'

import { quotaRulesOf, type RuledCall } from './quota-rules.ts'

export type AdmitDeps = {
  limitInferenceCall(attempt: {
    requestId: string
    principal: Principal
    tokens: number
    isCount?: boolean | undefined
    quotas?: CostedRules | undefined
  }): Promise<InferenceAdmission>
  noteBudgets: NoteBudgets
  recordRefusal: RecordRefusal
}

type CostedRules = { rules: QuotaRules; credits: number }

/** A call to a model, or one that counts tokens. */
type AdmittedCall = CallOrigin & RuledCall & Pick<InferenceCall, 'addHeaders' | 'counted'>

type Asked = {
  model: string | null
  /** The most tokens that it can use. */
  tokens: number
  /** The tokens are only counted, not generated: they use up neither the limits per day nor quotas. */
  isCount?: boolean
  credits(): number
  /** The tokens that it has used when it ends. */
  usedTokens(): Promise<number>
}

/** What a call with an unreadable body asks for. */
export const asksForNothing: Asked = {
  model: null,
  tokens: 0,
  credits: () => 0,
  usedTokens: async () => 0,
}

/** Checks every limit, quota and budget of a call to a model, and takes its slot. */
export const admitCall = (call: InferenceCall, meter: Meter, deps: AdmitDeps): Promise<CallSlot> =>
  admitWith(call, call.parsed.ok ? askFor(call.parsed.request, meter) : asksForNothing, deps)

const askFor = (request: ModelRequest, meter: Meter): Asked => ({
  model: request.model.id,
  tokens: request.estimate.tokens + request.maxOutputTokens,
  credits: () => Number(worstCaseOf(request)),
  usedTokens: async () => usedTokens(await meter.usage(), request),
})

/** Takes the slot of a call of any kind; throws if the call is refused. */
export async function admitWith(
  call: AdmittedCall,
  asked: Asked,
  deps: AdmitDeps,
): Promise<CallSlot> {
  const { requestId, principal } = call
  const rules = quotaRulesOf(call)
  const quotas = rules ? { rules, credits: asked.credits() } : undefined
  const { tokens, isCount } = asked
  const attempt = { requestId, principal, tokens, isCount, quotas }
  const admission = await deps.limitInferenceCall(attempt)
  call.addHeaders(admission.headers)
  const { slot, refusal, quotas: counted } = admission
  call.counted = counted && toCountedQuotas(counted, rules)
  const settle = async () => {
    const credits = (await slot?.settle(await asked.usedTokens(), call.counted?.credits)) ?? []
    if (!counted || !rules) return
    const { organizationId } = principal
    await deps.noteBudgets(budgetUsages(organizationId, rules.budgets, counted.call, credits))
  }
  if (refusal) {
    // A refusal that names a policy comes from a quota of the configuration.
    if (refusal.policy) openConfigured(call)?.announce('refuse')
    await settle()
    // A call that can never fit, or that exceeds a quota, has passed the rate limits, so it leaves an event.
    if (admission.isCounted)
      await deps.recordRefusal({ ...call, model: asked.model }, refusal, null)
    throw refusal
  }
  return { settle, [Symbol.asyncDispose]: settle }
}

export const toRefusedCall = ({ parsed, ...call }: InferenceCall) => ({
  ...call,
  model: parsed.ok ? parsed.request.model.id : null,
})
