import type { CallOutcome } from '#audit/event.ts'
import { isBlock } from '#inference/enforcement/refusals.ts'
import type { InferenceCall } from '#inference/inference-call.ts'
import type { Meter } from '#inference/metering/meter.ts'
import { ApiError } from '#platform/api-error.ts'

import { isByCaller } from './who-failed.ts'

type EndedCall = {
  call: Pick<InferenceCall, 'cancellation'>
  meter: Pick<Meter, 'hasBegun' | 'hasWritten' | 'hasLeft'>
  /** Undefined where the reader of the answer stopped reading. */
  failure: unknown
}

/**
 * How a call ended that did not complete, and so whether it is charged for what was generated (`cut`, `blocked`) or free
 * (`failed`). What has left is charged, always. An answer of which nothing has left is charged where callers can bring that
 * about: by hanging up, or by a failure that is theirs. It is free where the gateway or a provider failed, and so is one that is
 * ended with this process (docs/specification/credits.md#failed-and-cut-calls).
 */
export function decideOutcome({ call, meter, failure }: EndedCall): CallOutcome {
  if (isBlock(failure)) return 'blocked'
  if (isOverLimit(failure)) return 'refused'
  if (meter.hasLeft() || isHungUp(call)) return 'cut'
  if (failure === undefined) return meter.hasBegun() ? 'cut' : 'failed'
  return isByCaller(failure) && meter.hasWritten() ? 'cut' : 'failed'
}

/** By the caller, and not by this process, which gives a reason of its own. */
const isHungUp = ({ cancellation }: Pick<InferenceCall, 'cancellation'>): boolean =>
  cancellation.isCancelled && !(cancellation.reason instanceof ApiError)

/** A limit of what the organization may have others asked was reached before the request was sent. */
const isOverLimit = (failure: unknown): boolean =>
  failure instanceof ApiError && failure.code === 'rate_limit_exceeded'
