import type { Clock } from '#platform/clock.ts'
import type { Egress } from '#platform/egress.ts'
import type { FindAddresses } from '#platform/egress/find-addresses.ts'

import type { DestinationDeps } from './destinations/destination.ts'
import { createDestinations } from './destinations/destinations.ts'
import { createTestSender } from './sinks/send-test.ts'

type Settings = {
  egress: Egress
  findAddresses: FindAddresses
  privateTargets: readonly string[]
  allowsInsecureTls: boolean
  azureLoginUrl: string | undefined
  s3PatienceMs: number
  now: Clock
}

/** A call to a destination, from resolving its name to the last byte of its answer. */
const callMaxMs = 10_000
const answerLimitBytes = 64 * 1024

/** Where audit events are sent to: the only place that joins destinations and what they call with. */
export function createExports({ egress, azureLoginUrl, s3PatienceMs, now, ...rules }: Settings) {
  const destinations = createDestinations({ azureLoginUrl, s3PatienceMs })
  const request: DestinationDeps['request'] = (address, { tls, ...call }) =>
    egress.request(address, {
      answerLimitBytes,
      ...call,
      // A sink may have been saved when the operator still allowed it.
      ...(tls && { tls: { ...tls, verify: rules.allowsInsecureTls ? tls.verify : true } }),
      deadlineMs: callMaxMs,
    })
  const sendTest = createTestSender({ destinations, request, now })
  return { ...rules, destinations, request, sendTest }
}
