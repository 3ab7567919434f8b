import type { FreeTier } from '#access/free-tier/free-tier.ts'
import type { EventWriter } from '#audit/event-writer.ts'
import type { CallOutcome } from '#audit/event.ts'
import type { Credits } from '#credits/create-credits.ts'
import { toUsd } from '#credits/money.ts'
import { creditsFor, worstCaseCredits } from '#credits/price.ts'
import { buildHoldMeta, buildUsageMeta, type HoldMeta } from '#credits/usage-meta.ts'
import { noUsage, type Receipt } from '#formats/answer.ts'
import { ApiError } from '#platform/api-error.ts'

import type { ToEvent } from './call-event.ts'
import type { InferenceCall } from './inference-call.ts'
import type { Judgement } from './judging/verdicts/judgement.ts'
import { isBeyondLimits, isBlock, isUnjudged } from './judging/verdicts/policy-refusal.ts'
import type { Meter, MeteredUsage } from './metering/meter.ts'
import { usedTokens } from './metering/used-tokens.ts'
import type { ModelRequest } from './model-request.ts'
import type { Bill } from './run-inference.ts'
import { longestCallMs } from './upstreams/call-model.ts'

export type BillDeps = {
  credits: Pick<Credits, 'reserve' | 'settle'>
  freeTier: Pick<FreeTier, 'claim' | 'release'>
  /** For calls whose event no settlement carries. */
  events: Pick<EventWriter, 'write' | 'canTakeMore'>
  toEvent: ToEvent
  /** Added to the longest time that a call can take, for the hold to expire after it. */
  holdGraceMs: number
}

/** Holds the highest possible cost of a call. The bill is settled exactly once, however the call ends. */
export async function openBill(
  call: InferenceCall,
  judgement: Judgement,
  meter: Meter,
  deps: BillDeps,
): Promise<Bill> {
  const { request } = judgement
  const { requestId, principal } = call
  const { organizationId, projectId, credentialId } = principal
  const { id: model, price } = request.model
  const hold = { organizationId, id: requestId }
  const meta = buildHoldMeta({ projectId, keyId: credentialId, model, price })
  await deps.credits.reserve({
    ...hold,
    meta: withQuotas(meta, call),
    amount: worstCaseOf(request),
    expiresInMs: longestCallMs(request.model) + deps.holdGraceMs,
  })

  async function settle(outcome: CallOutcome, error?: unknown): Promise<Receipt> {
    // A request that was blocked before it was sent has not caused a search either.
    const isFree = outcome === 'failed' || (outcome === 'blocked' && !meter.hasBegun())
    const usage = isFree ? nothingUsed : withSearches(await meter.usage(), request)
    const amount = creditsFor(usage, price)
    const usageMeta = buildUsageMeta(meta, usage)
    const report = { ...usageMeta, credits: Number(amount) }
    const ending = { model, outcome, usage: report, findings: judgement, error }
    if (call.counted) {
      // Tokens count as they do in the limits, also of a call that costs nothing.
      call.counted.tokens = usedTokens(await meter.usage(), request)
      call.counted.credits = Number(amount)
    }
    const event = deps.toEvent(call, ending)
    const settled = await deps.credits.settle({ ...hold, amount, meta: usageMeta, event })
    const posted = settled?.posted ?? null
    return {
      ...toCost(settled?.charged ?? amount),
      remainingCredits: posted === null ? null : Number(posted),
      usage: usageFor(judgement, usage),
    }
  }

  return createBill(settle, {
    answered: () => outcomeOf(judgement, 'completed'),
    failed: (failure) => outcomeOf(judgement, decideOutcome({ call, request, meter, failure })),
  })
}

/** A call stays blocked that was answered with other words, whether or not its caller has read them. */
const outcomeOf = ({ replacement }: Judgement, outcome: CallOutcome): CallOutcome =>
  replacement ? 'blocked' : outcome

export type FreeCall = InferenceCall & { freeCaller: NonNullable<InferenceCall['freeCaller']> }

/**
 * The one free call of an anonymous caller. It is spent unless the upstream fails, or the request is blocked, before the
 * upstream starts to answer.
 */
export async function openFreeBill(
  call: FreeCall,
  judgement: Judgement,
  meter: Meter,
  { freeTier, events, toEvent }: BillDeps,
): Promise<Bill> {
  const { request } = judgement
  const { freeCaller, requestId, principal } = call
  const { id: model, price } = request.model
  const meta = buildHoldMeta({ projectId: null, keyId: principal.credentialId, model, price })
  await freeTier.claim(freeCaller, requestId, worstCaseOf(request))
  const settle = async (outcome: CallOutcome, error?: unknown): Promise<Receipt> => {
    const isSpent = meter.hasBegun() || (outcome !== 'failed' && outcome !== 'blocked')
    if (!isSpent) await freeTier.release(freeCaller, requestId)
    const usage = await meter.usage()
    const { costUsd } = toCost(creditsFor(usage, price))
    const report = { ...buildUsageMeta(meta, usage), credits: 0 }
    const ending = { model, outcome, usage: report, findings: judgement, error }
    await events.write(toEvent(call, ending))
    return { remainingCredits: null, creditsUsed: 0, costUsd, usage: usageFor(judgement, usage) }
  }
  return createBill(settle, {
    answered: () => outcomeOf(judgement, 'completed'),
    failed: (failure) => outcomeOf(judgement, decideOutcome({ call, request, meter, failure })),
  })
}

/** A bill that is not settled when it is disposed of belongs to a call that did not complete. */
function createBill(
  settle: (outcome: CallOutcome, error?: unknown) => Promise<Receipt>,
  outcomes: { answered(): CallOutcome; failed(failure: unknown): CallOutcome },
): Bill {
  let receipt: Promise<Receipt> | undefined
  let failure: unknown
  return {
    settle: () => (receipt ??= settle(outcomes.answered())),
    noteFailure: (error) => void (failure = error),
    async [Symbol.asyncDispose]() {
      // The call has failed already, so an error of the settlement cannot be reported to its caller.
      await (receipt ??= settle(outcomes.failed(failure), failure)).catch(() => undefined)
    },
  }
}

type EndedCall = { call: InferenceCall; request: ModelRequest; meter: Meter; failure: unknown }

/**
 * A call that its caller hangs up on, or that takes too long, is charged for what was produced; a plain answer goes on
 * without its caller, so that is all of it. A call whose provider fails is free until the model has written something;
 * a plain answer is free in any case, because its caller receives none of it. An answer that a policy ends is charged for
 * what was generated, plain or streamed, and so is one that is beyond the limits of judging: callers could ask for such
 * answers. One that could not be judged for another reason is not its caller's fault, and free
 * (docs/specification/credits.md#failed-and-cut-calls).
 */
function decideOutcome({ call, request, meter, failure }: EndedCall): CallOutcome {
  if (isBlock(failure)) return 'blocked'
  if (isBeyondLimits(failure)) return 'cut'
  if (isUnjudged(failure)) return 'failed'
  const { isCancelled, reason } = call.cancellation
  // Ended by this process and not by its caller: then it counts like a failure of the provider.
  const isEnded = reason instanceof ApiError
  if (isCancelled && !isEnded) return 'cut'
  const isTimeout = failure instanceof ApiError && failure.code === 'upstream_timeout'
  const isProviderFailure = failure !== undefined && !isTimeout
  const isAnswerLost = isProviderFailure && !request.isStreamed
  return meter.hasWritten() && !isAnswerLost ? 'cut' : 'failed'
}

/** The sweep of holds counts the call if this process dies. */
const withQuotas = (meta: HoldMeta, { counted }: InferenceCall): HoldMeta =>
  counted ? { ...meta, quotas: { day: counted.day, subjects: counted.subjects } } : meta

export const worstCaseOf = ({ estimate, maxOutputTokens, webSearchesMax, model }: ModelRequest) =>
  worstCaseCredits(
    {
      inputTokens: estimate.tokens,
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

/** Other words come without a report of the upstream, also where it had made one of what they stand for. */
const usageFor = ({ replacement }: Judgement, usage: MeteredUsage) =>
  replacement || usage.origin !== 'upstream' ? usage : null

const nothingUsed: MeteredUsage = { ...noUsage, origin: 'local-estimate' }
