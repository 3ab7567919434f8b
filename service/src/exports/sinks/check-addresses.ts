import type { SinkType } from '@gatehouse/contract/exports/sink-config'

import type { DestinationType } from '#exports/destinations/destination.ts'
import type { Destinations } from '#exports/destinations/destinations.ts'
import { portsOf } from '#exports/destinations/ports.ts'
import type { FindAddresses } from '#platform/egress/find-addresses.ts'
import { requirePublicTarget, requireTenantTarget } from '#platform/egress/tenant-address.ts'

import { invalidConfig } from './read-config.ts'
import type { Members } from './sink.ts'

type AddressDeps = {
  destinations: Destinations
  findAddresses: FindAddresses
  /** They may be called although they are private. */
  privateTargets: readonly string[]
}

/** Refuses what can be seen to be wrong without asking a name server; throws a 422. */
export function requireAllowedAddress(
  type: SinkType,
  config: Members,
  deps: Omit<AddressDeps, 'findAddresses'>,
) {
  requireTenantTarget(addressOf(type, config, deps), rulesFor(type, config, deps))
}

/** As `requireAllowedAddress`, and refuses a host name that leads to a private address now. */
export async function requirePublicAddress(type: SinkType, config: Members, deps: AddressDeps) {
  const rules = { ...rulesFor(type, config, deps), findAddresses: deps.findAddresses }
  await requirePublicTarget(addressOf(type, config, deps), rules)
}

/** As it was typed: an address that was parsed and written again has lost some of what is wrong with it. */
function addressOf(
  type: SinkType,
  config: Members,
  { destinations }: Pick<AddressDeps, 'destinations'>,
): string {
  const destination = destinations[type] as DestinationType<Members>
  const { endpoint } = config
  return typeof endpoint === 'string' ? endpoint : destination.addressOf(config)
}

const rulesFor = (
  type: SinkType,
  config: Members,
  { privateTargets }: Pick<AddressDeps, 'privateTargets'>,
) => ({
  privateTargets,
  ports: portsOf[type],
  refuse: (rule: string) => invalidConfig(memberWithAddress(type, config), rule),
})

/** Without an endpoint, the host name of the vendor follows from another member. */
function memberWithAddress(type: SinkType, { endpoint }: Members): string {
  if (endpoint !== undefined) return 'endpoint'
  return type === 'datadog_logs' ? 'site' : 'bucket'
}
