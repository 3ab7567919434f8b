import type { CallOutcome } from '#audit/event.ts'
import { isBlock } from '#inference/enforcement/refusals.ts'
import type { InferenceCall } from '#inference/inference-call.ts'
import type { Meter } from '#inference/metering/meter.ts'
import { ApiError } from '#platform/api-error.ts'

import { isByCaller } from './who-failed.ts'

type EndedCall = {
  call: Pick<InferenceCall, 'cancellation'>
  meter: Pick<Meter, 'hasBegun' | 'hasWritten' | 'hasLeft'>
  /** Undefined if the reader of the answer stopped reading. */
  failure: unknown
}

/**
 * The outcome of a call that did not complete, which decides whether what was generated is charged (`cut`, `blocked`) or free
 * (`failed`). Output that has left is always charged. An answer of which nothing has left is charged if callers can bring that
 * about, by hanging up or by a failure of their own. It is free if the gateway or a provider failed, or if this process is
 * stopping (docs/specification/credits.md#failed-and-cut-calls).
 */
export function decideOutcome({ call, meter, failure }: EndedCall): CallOutcome {
  if (isBlock(failure)) return 'blocked'
  if (isOverLimit(failure)) return 'refused'
  if (meter.hasLeft() || isHungUp(call)) return 'cut'
  if (failure === undefined) return meter.hasBegun() ? 'cut' : 'failed'
  return isByCaller(failure) && meter.hasWritten() ? 'cut' : 'failed'
}

/** Cancelled by the caller. When this process cancels a call, it gives a reason of its own. */
const isHungUp = ({ cancellation }: Pick<InferenceCall, 'cancellation'>): boolean =>
  cancellation.isCancelled && !(cancellation.reason instanceof ApiError)

/** The organization had other models asked too many questions, which was found before the request was sent. */
const isOverLimit = (failure: unknown): boolean =>
  failure instanceof ApiError && failure.code === 'rate_limit_exceeded'
