import type { SinkType } from '@gatehouse/contract/exports/sink-config'

import { checkTarget, EgressBlocked, isPrivateTarget } from '#platform/egress-target.ts'
import { sinkPorts } from '#platform/egress.ts'
import type { FindAddresses } from '#platform/egress/find-addresses.ts'
import { isPublicAddress } from '#platform/special-addresses.ts'

import { invalidConfig } from './read-config.ts'
import type { Members } from './sink.ts'

/** Where a configuration leads to. The operator's private targets may be called although they are private. */
function addressOf(type: SinkType, config: Members): { address: string; member: string } {
  const { endpoint, site, bucket, region } = config
  if (typeof endpoint === 'string') return { address: endpoint, member: 'endpoint' }
  if (type === 'datadog_logs') {
    return { address: `https://http-intake.logs.${String(site)}`, member: 'site' }
  }
  const address = `https://${String(bucket)}.s3.${String(region)}.amazonaws.com`
  return { address, member: 'bucket' }
}

/** Refuses what can be seen to be wrong without asking a name server; throws a 422. */
export function requireAllowedAddress(
  type: SinkType,
  config: Members,
  privateTargets: readonly string[],
): URL {
  const { address, member } = addressOf(type, config)
  try {
    return checkTarget(address, { privateTargets, ports: sinkPorts })
  } catch (error) {
    if (error instanceof EgressBlocked) {
      throw invalidConfig(member, `is not allowed: ${error.reason.replace(/\.$/, '')}`)
    }
    throw error
  }
}

type AddressDeps = { findAddresses: FindAddresses; privateTargets: readonly string[] }

/**
 * Refuses a host name that leads to a private address now. Only what is known to be wrong is refused: a name that cannot
 * be resolved in time is accepted, because every delivery checks the address again, and the sink shows the error.
 */
export async function requirePublicAddress(
  type: SinkType,
  config: Members,
  { findAddresses, privateTargets }: AddressDeps,
) {
  const url = requireAllowedAddress(type, config, privateTargets)
  if (isPrivateTarget(url, privateTargets)) return
  const addresses = await findAddresses(url.hostname).catch(() => [])
  if (addresses.every((address) => isPublicAddress(address))) return
  const { member } = addressOf(type, config)
  throw invalidConfig(member, 'leads to an address outside the public internet')
}
