import type { DeliveryOutcome } from '#exports/destinations/destination.ts'

import type { Failure } from './lease-store.ts'

const baseMs = 1000
const capMs = 5 * 60 * 1000
/** A destination cannot ask for more patience than this. */
const retryAfterMaxMs = 60 * 60 * 1000

/**
 * How long to wait before a batch is sent again: a random time up to a bound that doubles with each failure, so that sinks of the
 * same destination do not return at the same moment.
 */
export function waitAfterFailure(
  failures: number,
  retryAfterMs = 0,
  random: () => number = Math.random,
): number {
  const boundMs = Math.min(capMs, baseMs * 2 ** Math.min(failures, 20))
  return Math.max(random() * boundMs, Math.min(retryAfterMs, retryAfterMaxMs))
}

/** A configuration that does not work is tried again now and then: the destination may have been changed instead. */
export const waitForProbeMs = (random: () => number = Math.random): number =>
  capMs * 0.8 + capMs * 0.4 * random()

/** What is noted about something that a destination has not taken, and when it is sent again. */
export function deliveryFailureOf(outcome: DeliveryOutcome, attempt: number): Failure {
  const error = 'error' in outcome ? outcome.error : 'The destination did not confirm it.'
  return outcome.kind === 'failed'
    ? { error, state: 'retrying', waitMs: waitAfterFailure(attempt, outcome.retryAfterMs) }
    : { error, state: 'error', waitMs: waitForProbeMs() }
}
