import { isIP } from 'node:net'

import { isPrivateName } from '#platform/egress-target.ts'
import { isPublicAddress } from '#platform/egress/special-addresses.ts'

import type { UpstreamEntry } from './catalogue-file.ts'

const vendorHosts: ReadonlySet<string> = new Set(['api.anthropic.com', 'api.openai.com'])

/** The two vendors document what their members cost, and fetch media from networks of their own. */
export const isVendorHost = (baseUrl: string): boolean => vendorHosts.has(new URL(baseUrl).hostname)

/** Which URLs of media an upstream gets: none, those of the public internet, or all. */
export type MediaUrls = NonNullable<UpstreamEntry['media_urls']>

/**
 * Unless the operator decides otherwise, an upstream on a private network gets no media URLs, because it could fetch from that
 * network.
 */
export function decideMediaUrls({
  base_url,
  media_urls,
}: Pick<UpstreamEntry, 'base_url' | 'media_urls'>): MediaUrls {
  const { hostname } = new URL(base_url)
  const decided = media_urls ?? (isPrivateHost(hostname) ? 'refuse' : 'public')
  return decided === 'public' && isVendorHost(base_url) ? 'any' : decided
}

/** Decided by the spelling of the address alone: names are not resolved when the catalogue is read. */
function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0) return !isPublicAddress(host)
  const isSingleLabel = host.split('.').filter((label) => label !== '').length < 2
  return isSingleLabel || isPrivateName(host)
}
