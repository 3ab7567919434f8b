import type { FreeTier } from '#access/free-tier/free-tier.ts'
import type { EventWriter } from '#audit/event-writer.ts'
import type { CallOutcome } from '#audit/event.ts'
import type { Credits } from '#credits/create-credits.ts'
import { toUsd } from '#credits/money.ts'
import { creditsFor, worstCaseCredits } from '#credits/price.ts'
import { buildHoldMeta, buildUsageMeta } from '#credits/usage-meta.ts'
import { noUsage, type Receipt } from '#formats/answer.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'

import { toCallEvent } from './call-event.ts'
import type { InferenceCall } from './inference-call.ts'
import type { Meter, MeteredUsage } from './metering/meter.ts'
import type { ModelRequest } from './model-request.ts'
import type { Bill } from './run-inference.ts'
import { longestCallMs } from './upstreams/call-model.ts'

export type BillDeps = {
  credits: Pick<Credits, 'reserve' | 'settle'>
  freeTier: Pick<FreeTier, 'claim' | 'release'>
  /** For calls whose event no settlement carries. */
  events: Pick<EventWriter, 'write' | 'canTakeMore'>
  now: Clock
  /** Added to the longest time that a call can take, for the hold to expire after it. */
  holdGraceMs: number
}

/** Holds the highest possible cost of a call. The bill is settled exactly once, however the call ends. */
export async function openBill(
  call: InferenceCall,
  request: ModelRequest,
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
    meta,
    amount: worstCaseOf(request),
    expiresInMs: longestCallMs(request.model) + deps.holdGraceMs,
  })

  async function settle(outcome: CallOutcome): Promise<Receipt> {
    const usage = outcome === 'failed' ? nothingUsed : withSearches(await meter.usage(), request)
    const amount = creditsFor(usage, price)
    const usageMeta = buildUsageMeta(meta, usage)
    const report = { ...usageMeta, credits: Number(amount) }
    const event = toCallEvent(call, { model, outcome, usage: report }, deps.now())
    const settled = await deps.credits.settle({ ...hold, amount, meta: usageMeta, event })
    const posted = settled?.posted ?? null
    return {
      ...toCost(settled?.charged ?? amount),
      remainingCredits: posted === null ? null : Number(posted),
      usage: usageCountedHere(usage),
    }
  }

  return createBill(settle, (failure) => decideOutcome({ call, request, meter, failure }))
}

export type FreeCall = InferenceCall & { freeCaller: NonNullable<InferenceCall['freeCaller']> }

/** The one free call of an anonymous caller. It is spent unless the upstream fails before it starts to answer. */
export async function openFreeBill(
  call: FreeCall,
  request: ModelRequest,
  meter: Meter,
  { freeTier, events, now }: BillDeps,
): Promise<Bill> {
  const { freeCaller, requestId, principal } = call
  const { id: model, price } = request.model
  const meta = buildHoldMeta({ projectId: null, keyId: principal.credentialId, model, price })
  await freeTier.claim(freeCaller, requestId, worstCaseOf(request))
  const settle = async (outcome: CallOutcome): Promise<Receipt> => {
    const isSpent = outcome !== 'failed' || meter.hasBegun()
    if (!isSpent) await freeTier.release(freeCaller, requestId)
    const usage = await meter.usage()
    const { costUsd } = toCost(creditsFor(usage, price))
    const report = { ...buildUsageMeta(meta, usage), credits: 0 }
    await events.write(toCallEvent(call, { model, outcome, usage: report }, now()))
    return { remainingCredits: null, creditsUsed: 0, costUsd, usage: usageCountedHere(usage) }
  }
  return createBill(settle, (failure) => decideOutcome({ call, request, meter, failure }))
}

/** A bill that is not settled when it is disposed of belongs to a call that did not complete. */
function createBill(
  settle: (outcome: CallOutcome) => Promise<Receipt>,
  decide: (failure: unknown) => CallOutcome,
): Bill {
  let receipt: Promise<Receipt> | undefined
  let failure: unknown
  return {
    settle: () => (receipt ??= settle('completed')),
    noteFailure: (error) => void (failure = error),
    async [Symbol.asyncDispose]() {
      // The call has failed already, so an error of the settlement cannot be reported to its caller.
      await (receipt ??= settle(decide(failure))).catch(() => undefined)
    },
  }
}

type EndedCall = { call: InferenceCall; request: ModelRequest; meter: Meter; failure: unknown }

/**
 * A call that its caller hangs up on, or that takes too long, is charged for what was produced; a plain answer goes on
 * without its caller, so that is all of it. A call whose provider fails is free until the model has written something;
 * a plain answer is free in any case, because its caller receives none of it
 * (docs/specification/credits.md#failed-and-cut-calls).
 */
function decideOutcome({ call, request, meter, failure }: EndedCall): CallOutcome {
  const { isCancelled, reason } = call.cancellation
  // Ended by this process and not by its caller: then it counts like a failure of the provider.
  const isEnded = reason instanceof ApiError
  if (isCancelled && !isEnded) return 'cut'
  const isTimeout = failure instanceof ApiError && failure.code === 'upstream_timeout'
  const isProviderFailure = failure !== undefined && !isTimeout
  const isAnswerLost = isProviderFailure && !request.isStreamed
  return meter.hasWritten() && !isAnswerLost ? 'cut' : 'failed'
}

const worstCaseOf = ({ estimate, maxOutputTokens, webSearchesMax, model }: ModelRequest) =>
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

const usageCountedHere = (usage: MeteredUsage) => (usage.origin === 'upstream' ? null : usage)

const nothingUsed: MeteredUsage = { ...noUsage, origin: 'local-estimate' }
