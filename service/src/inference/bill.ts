import type { FreeTier } from '#access/free-tier/free-tier.ts'
import type { EventWriter } from '#audit/event-writer.ts'
import type { CallOutcome } from '#audit/event.ts'
import type { Credits } from '#credits/create-credits.ts'
import { toUsd } from '#credits/money.ts'
import { creditsFor, worstCaseCredits } from '#credits/price.ts'
import { buildHoldMeta, buildUsageMeta, type HoldMeta } from '#credits/usage-meta.ts'
import { noUsage, type Receipt } from '#formats/answer.ts'
import { toApiError } from '#platform/to-api-error.ts'

import { describeCaller, type ToEvent } from './call-event.ts'
import { decideOutcome } from './charging/decide-outcome.ts'
import type { Findings } from './enforcement/findings.ts'
import { UnjudgedAnswer } from './enforcement/refusals.ts'
import type { InferenceCall } from './inference-call.ts'
import { countUsage, type UsageMetrics } from './metering/count-usage.ts'
import type { Meter, MeteredUsage } from './metering/meter.ts'
import { usedTokens } from './metering/used-tokens.ts'
import type { ModelRequest } from './model-request.ts'
import type { Bill, BilledChecks } from './run-inference.ts'
import { longestCallMs } from './upstreams/call-model.ts'

export type BillDeps = {
  credits: Pick<Credits, 'reserve' | 'settle'>
  freeTier: Pick<FreeTier, 'claim' | 'release'>
  /** For calls without a settlement that would write their event. */
  events: Pick<EventWriter, 'write' | 'canTakeMore'>
  toEvent: ToEvent
  metrics: UsageMetrics
  /** Added to the longest time that a call can take, so that the hold expires only after the call has ended. */
  holdGraceMs: number
}

/** Holds the highest possible cost of a call. The bill is settled exactly once, however the call ends. */
export async function openBill(
  call: InferenceCall,
  { request, growthMost, findings }: BilledChecks,
  meter: Meter,
  deps: BillDeps,
): Promise<Bill> {
  const { requestId, principal } = call
  const { organizationId, projectId, credentialId } = principal
  const { id: model, price } = request.model
  const hold = { organizationId, id: requestId }
  const meta = buildHoldMeta({ projectId, keyId: credentialId, model, price })
  await deps.credits.reserve({
    ...hold,
    meta: withEventFacts(meta, call),
    amount: worstCaseOf(request, growthMost),
    expiresInMs: longestCallMs(request.model) + deps.holdGraceMs,
  })

  async function settle(outcome: CallOutcome, error?: unknown): Promise<Receipt> {
    // A request that was blocked before it was sent has not caused a web search either.
    const isUnsent = outcome === 'refused' || (outcome === 'blocked' && !meter.hasBegun())
    const isFree = outcome === 'failed' || isUnsent
    const usage = isFree ? nothingUsed : withSearches(await meter.usage(), request)
    const amount = creditsFor(usage, price)
    countUsage(deps.metrics, { model, usage, credits: amount })
    const usageMeta = buildUsageMeta(meta, usage)
    const report = { ...usageMeta, credits: Number(amount) }
    const ending = { ...endingOf(outcome, error), model, usage: report, findings, ...left(meter) }
    if (call.counted) {
      // Tokens count in quotas as they do in limits, even if the call costs nothing.
      call.counted.tokens = usedTokens(await meter.usage(), request)
      call.counted.credits = Number(amount)
    }
    const event = deps.toEvent(call, ending)
    const settled = await deps.credits.settle({ ...hold, amount, meta: usageMeta, event })
    const posted = settled?.posted ?? null
    return {
      ...toCost(settled?.charged ?? amount),
      remainingCredits: posted === null ? null : Number(posted),
      usage: usageFor(findings, usage),
    }
  }

  return createBill(settle, {
    isPaid: true,
    answered: () => outcomeOf(findings, 'completed'),
    failed: (failure) => outcomeOf(findings, decideOutcome({ call, meter, failure })),
  })
}

/** A call that was answered with a replacement stays `blocked`, whether or not its caller has read the replacement. */
const outcomeOf = ({ replacement }: Findings, outcome: CallOutcome): CallOutcome =>
  replacement ? 'blocked' : outcome

export type FreeCall = InferenceCall & { freeCaller: NonNullable<InferenceCall['freeCaller']> }

/**
 * The one free call of an anonymous caller. It is spent unless the request is blocked, or the upstream fails, before the
 * upstream starts to answer.
 */
export async function openFreeBill(
  call: FreeCall,
  { request, growthMost, findings }: BilledChecks,
  meter: Meter,
  { freeTier, events, toEvent, metrics }: BillDeps,
): Promise<Bill> {
  const { freeCaller, requestId, principal } = call
  const { id: model, price } = request.model
  const meta = buildHoldMeta({ projectId: null, keyId: principal.credentialId, model, price })
  await freeTier.claim(freeCaller, requestId, worstCaseOf(request, growthMost))
  const settle = async (outcome: CallOutcome, error?: unknown): Promise<Receipt> => {
    const isSpent = meter.hasBegun() || !unspent.has(outcome)
    if (!isSpent) await freeTier.release(freeCaller, requestId)
    const usage = await meter.usage()
    const credits = creditsFor(usage, price)
    countUsage(metrics, { model, usage, credits })
    const { costUsd } = toCost(credits)
    const report = { ...buildUsageMeta(meta, usage), credits: 0 }
    const ending = { ...endingOf(outcome, error), model, usage: report, findings, ...left(meter) }
    await events.write(toEvent(call, ending))
    return { remainingCredits: null, creditsUsed: 0, costUsd, usage: usageFor(findings, usage) }
  }
  return createBill(settle, {
    isPaid: false,
    answered: () => outcomeOf(findings, 'completed'),
    failed: (failure) => outcomeOf(findings, decideOutcome({ call, meter, failure })),
  })
}

/** Outcomes that give the free call back, if the upstream has not started to answer. */
const unspent: ReadonlySet<CallOutcome> = new Set<CallOutcome>(['failed', 'blocked', 'refused'])

const left = (meter: Meter) => ({ firstLeftAtMs: meter.firstLeftAtMs() })

/** The event of a refused call carries the status and the code of its answer. */
function endingOf(outcome: CallOutcome, error: unknown) {
  if (outcome !== 'refused') return { outcome, error }
  const { status, code } = toApiError(error)
  return { outcome, error, refusal: { status, code } }
}

/** A bill that is disposed of without having been settled belongs to a call that did not complete. */
function createBill(
  settle: (outcome: CallOutcome, error?: unknown) => Promise<Receipt>,
  outcomes: { isPaid: boolean; answered(): CallOutcome; failed(failure: unknown): CallOutcome },
): Bill {
  let receipt: Promise<Receipt> | undefined
  let failure: unknown
  let outcome: CallOutcome | undefined
  return {
    settle: () => (receipt ??= settle(outcomes.answered())),
    noteFailure(error) {
      failure = error
      // Decided now: a caller who hangs up after this did not cause the failure.
      outcome = outcomes.failed(error)
      if (!(error instanceof UnjudgedAnswer)) return error
      return error.tell(outcomes.isPaid && outcome !== 'failed')
    },
    async [Symbol.asyncDispose]() {
      outcome ??= outcomes.failed(failure)
      // The call has failed already, so an error of the settlement cannot be reported to its caller.
      await (receipt ??= settle(outcome, failure)).catch(() => undefined)
    },
  }
}

/** The sweep of holds counts the call, and writes its event, if this process dies. */
function withEventFacts(meta: HoldMeta, { counted, principal }: InferenceCall): HoldMeta {
  const { type, projectLabel, userId } = describeCaller(principal)
  return {
    ...meta,
    ...(counted && { quotas: { day: counted.day, subjects: counted.subjects } }),
    caller: {
      type,
      ...(projectLabel !== null && { project_label: projectLabel }),
      ...(userId !== null && { user_id: userId }),
    },
  }
}

/** `growthMost`: by how many tokens the request may still become longer. */
export const worstCaseOf = (
  { estimate, maxOutputTokens, webSearchesMax, model }: ModelRequest,
  growthMost = 0,
) =>
  worstCaseCredits(
    {
      inputTokens: estimate.tokens + growthMost,
      maxOutputTokens,
      webSearches: webSearchesMax,
      isExact: estimate.origin !== 'local-estimate',
    },
    model.price,
  )

const withSearches = (usage: MeteredUsage, { webSearchesMin }: ModelRequest): MeteredUsage =>
  webSearchesMin > (usage.webSearches ?? 0) ? { ...usage, webSearches: webSearchesMin } : usage

/** Amounts stay below 2^53: prices and token counts are bounded. */
const toCost = (credits: bigint) => ({
  creditsUsed: Number(credits),
  costUsd: toUsd(credits),
})

/**
 * A replacement comes without the upstream's usage report, even if the upstream had reported the usage of the answer that was
 * replaced.
 */
const usageFor = ({ replacement }: Findings, usage: MeteredUsage) =>
  replacement || usage.origin !== 'upstream' ? usage : null

const nothingUsed: MeteredUsage = { ...noUsage, origin: 'local-estimate' }
