import { checkTarget, EgressBlocked, isPrivateTarget } from '#platform/egress-target.ts'

import type { FindAddresses } from './find-addresses.ts'
import { isPublicAddress } from './special-addresses.ts'

/** Where an address may lead to that a tenant has chosen. `createTenantEgress` checks the same again with every call. */
type TenantAddressRules = {
  /** They may be called although they are private. */
  privateTargets: readonly string[]
  ports: readonly number[]
  /** The error for an address that breaks a rule, which is the end of a sentence that starts with the member's name. */
  refuse(rule: string): Error
}

/** Refuses what can be seen to be wrong without asking a name server. */
export function requireTenantTarget(
  address: string,
  { privateTargets, ports, refuse }: TenantAddressRules,
): URL {
  try {
    return checkTarget(address, { privateTargets, ports, setting: 'EXPORT_PRIVATE_TARGETS' })
  } catch (error) {
    if (!(error instanceof EgressBlocked)) throw error
    throw refuse(`is not allowed: ${error.reason.replace(/\.$/, '')}`)
  }
}

/**
 * Refuses a host name that leads to a private address now. Only what is known to be wrong is refused: a name that cannot
 * be resolved in time is accepted, because every call checks the address again, and its failure is shown.
 */
export async function requirePublicTarget(
  address: string,
  rules: TenantAddressRules & { findAddresses: FindAddresses },
) {
  const url = requireTenantTarget(address, rules)
  if (isPrivateTarget(url, rules.privateTargets)) return
  const addresses = await rules.findAddresses(url.hostname).catch(() => [])
  if (addresses.every((each) => isPublicAddress(each))) return
  throw rules.refuse('leads to an address outside the public internet')
}
