import type { Announce } from '#audit/announce.ts'
import type { Destinations } from '#exports/destinations/destinations.ts'
import type { MutationDeps } from '#http/bind-mutation.ts'
import type { FindAddresses } from '#platform/egress/find-addresses.ts'
import type { Gate } from '#platform/lines/gate.ts'

import type { SendTest } from './send-test.ts'

export type SinkDeps = MutationDeps & {
  announce: Announce
  destinations: Destinations
  findAddresses: FindAddresses
  /** The operator's `host:port` entries: destinations that may be private. */
  privateTargets: readonly string[]
  allowsInsecureTls: boolean
  sendTest: SendTest
  /** Limits how many connections the reads of an organization can hold. */
  readGate: Gate
}
