import type { DeliveryOutcome } from '#exports/destinations/destination.ts'

import type { Failure } from './lease-store.ts'
import { waitAfterFailure, waitForProbeMs } from './wait-after-failure.ts'

/** What is noted about something that a destination has not taken, and when it is sent again. */
export function deliveryFailureOf(outcome: DeliveryOutcome, attempt: number): Failure {
  const error = 'error' in outcome ? outcome.error : 'The destination did not confirm it.'
  return outcome.kind === 'failed'
    ? { error, state: 'retrying', waitMs: waitAfterFailure(attempt, outcome.retryAfterMs) }
    : { error, state: 'error', waitMs: waitForProbeMs() }
}
