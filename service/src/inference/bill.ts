import type { FreeTier } from '#access/free-tier.ts'
import { callEvent, type CallOutcome } from '#audit/event.ts'
import type { Credits } from '#credits/create-credits.ts'
import { creditsFor, worstCaseCredits } from '#credits/price.ts'
import { holdMetaOf, usageMetaOf } from '#credits/usage-meta.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'

import type { Receipt } from './answer.ts'
import type { Asked, Call } from './call.ts'
import type { Meter, MeteredUsage } from './meter.ts'
import type { Bill } from './run-inference.ts'
import { attemptsMax } from './upstreams/call-model.ts'

export type BillTools = {
  credits: Pick<Credits, 'reserve' | 'settle'>
  freeTier: Pick<FreeTier, 'claim' | 'release'>
  now: Clock
  /** How long a hold outlives the longest that its call can take. */
  holdGraceMs: number
}

/** Holds what a call may cost at worst; from then on it is settled once, however it ends. */
export async function openBill(
  call: Call,
  asked: Asked,
  meter: Meter,
  tools: BillTools,
): Promise<Bill> {
  const { requestId, principal, protocol } = call
  const { organizationId, projectId, credentialId } = principal
  const { id: model, price } = asked.model
  const place = { organizationId, id: requestId }
  const meta = holdMetaOf({ projectId, keyId: credentialId, model, price })
  await tools.credits.reserve({
    ...{ ...place, meta, amount: worstCaseOf(asked), expiresInMs: lastsAtMost(asked, tools) },
  })

  async function settle(outcome: CallOutcome): Promise<Receipt> {
    const usage = outcome === 'failed' ? nothingUsed : await meter.usage()
    const amount = creditsFor(usage, price)
    const usageMeta = usageMetaOf(meta, usage)
    const event = callEvent(
      {
        ...{ organizationId, requestId, projectId, model, outcome },
        ...{ actor: credentialId, target: protocol.name },
        usage: { ...usageMeta, credits: Number(amount) },
      },
      tools.now(),
    )
    const settled = await tools.credits.settle({ ...place, amount, meta: usageMeta, event })
    return {
      ...costOf(settled?.charged ?? amount),
      remainingCredits: settled && Number(settled.available),
      usage: usageOf(usage),
    }
  }

  return settledOnce(settle, (failure) => outcomeOf({ call, asked, meter, failure }))
}

export type FreeCall = Call & { freeCaller: NonNullable<Call['freeCaller']> }

/** The one call that somebody without an account has: it is spent unless the upstream fails to begin an answer. */
export async function openFreeBill(
  call: FreeCall,
  asked: Asked,
  meter: Meter,
  { freeTier }: BillTools,
): Promise<Bill> {
  const { freeCaller, requestId } = call
  await freeTier.claim(freeCaller, requestId, worstCaseOf(asked))
  const settle = async (outcome: CallOutcome): Promise<Receipt> => {
    const isSpent = outcome !== 'failed' || meter.hasBegun()
    if (!isSpent) await freeTier.release(freeCaller, requestId)
    const usage = await meter.usage()
    const { costUsd } = costOf(creditsFor(usage, asked.model.price))
    return { remainingCredits: null, creditsUsed: 0, costUsd, usage: usageOf(usage) }
  }
  return settledOnce(settle, (failure) => outcomeOf({ call, asked, meter, failure }))
}

/** A bill that was not settled when it is disposed of belongs to a call that did not reach its end. */
function settledOnce(
  settle: (outcome: CallOutcome) => Promise<Receipt>,
  howItEnded: (failure: unknown) => CallOutcome,
): Bill {
  let receipt: Promise<Receipt> | undefined
  let failure: unknown
  return {
    settle: () => (receipt ??= settle('completed')),
    noteFailure: (error) => void (failure = error),
    async [Symbol.asyncDispose]() {
      // Whoever could be told is told by `settle`; here the call has failed for another reason already.
      await (receipt ??= settle(howItEnded(failure))).catch(() => undefined)
    },
  }
}

type Ending = { call: Call; asked: Asked; meter: Meter; failure: unknown }

/**
 * Who hangs up pays for what was produced, and so does a call that asks for more than a call may have. A
 * model that fails costs nothing before it has said anything, and where its words would only have been sent
 * with the last one (G1.2).
 */
function outcomeOf({ call, asked, meter, failure }: Ending): CallOutcome {
  if (call.signal.aborted) return 'cut'
  const isTooLong = failure instanceof ApiError && failure.code === 'upstream_timeout'
  const isProvidersFault = failure !== undefined && !isTooLong
  const isForNobody = isProvidersFault && !asked.isStreamed
  return meter.hasWritten() && !isForNobody ? 'cut' : 'failed'
}

const worstCaseOf = ({ estimate, maxOutputTokens, model }: Asked) =>
  worstCaseCredits(
    {
      ...{ inputTokens: estimate.tokens, maxOutputTokens },
      isExact: estimate.origin === 'local-exact',
    },
    model.price,
  )

/** Each attempt at each upstream may take as long as the upstream is allowed to. */
function lastsAtMost({ model }: Asked, { holdGraceMs }: BillTools): number {
  const total = model.upstreams.reduce((sum, { upstream }) => sum + upstream.total_timeout_ms, 0)
  return total * attemptsMax + holdGraceMs
}

/** One credit is one micro-USD. Amounts stay below 2^53: prices and token counts are bounded. */
const costOf = (credits: bigint) => ({
  creditsUsed: Number(credits),
  costUsd: Number(credits) / 1_000_000,
})

const usageOf = (usage: MeteredUsage) => (usage.origin === 'upstream' ? null : usage)

const nothingUsed: MeteredUsage = {
  ...{ inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0 },
  ...{ reasoningTokens: 0, origin: 'local-estimate' },
}
