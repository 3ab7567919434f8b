import type { SinkType } from '@gatehouse/contract/exports/sink-config'

import type { DestinationType } from '#exports/destinations/destination.ts'
import type { Destinations } from '#exports/destinations/destinations.ts'
import { portsOf } from '#exports/destinations/ports.ts'
import { checkTarget, EgressBlocked, isPrivateTarget } from '#platform/egress-target.ts'
import type { FindAddresses } from '#platform/egress/find-addresses.ts'
import { isPublicAddress } from '#platform/egress/special-addresses.ts'

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
  { destinations, privateTargets }: Omit<AddressDeps, 'findAddresses'>,
): URL {
  const destination = destinations[type] as DestinationType<Members>
  // As it was typed: an address that was parsed and written again has lost some of what is wrong with it.
  const { endpoint } = config
  const address = typeof endpoint === 'string' ? endpoint : destination.addressOf(config)
  try {
    return checkTarget(address, {
      privateTargets,
      ports: portsOf[type],
      setting: 'EXPORT_PRIVATE_TARGETS',
    })
  } catch (error) {
    if (!(error instanceof EgressBlocked)) throw error
    const rule = `is not allowed: ${error.reason.replace(/\.$/, '')}`
    throw invalidConfig(memberWithAddress(type, config), rule)
  }
}

/** Without an endpoint, the host name of the vendor follows from another member. */
function memberWithAddress(type: SinkType, { endpoint }: Members): string {
  if (endpoint !== undefined) return 'endpoint'
  return type === 'datadog_logs' ? 'site' : 'bucket'
}

/**
 * Refuses a host name that leads to a private address now. Only what is known to be wrong is refused: a name that cannot
 * be resolved in time is accepted, because every delivery checks the address again, and the sink shows the error.
 */
export async function requirePublicAddress(type: SinkType, config: Members, deps: AddressDeps) {
  const url = requireAllowedAddress(type, config, deps)
  if (isPrivateTarget(url, deps.privateTargets)) return
  const addresses = await deps.findAddresses(url.hostname).catch(() => [])
  if (addresses.every((address) => isPublicAddress(address))) return
  const rule = 'leads to an address outside the public internet'
  throw invalidConfig(memberWithAddress(type, config), rule)
}
