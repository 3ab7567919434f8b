import type { OriginSettings } from '#platform/origin-pools.ts'

import type { Catalogue, Upstream } from './catalogue.ts'

export const settingsOf = (upstream: Upstream): OriginSettings => ({
  connections: upstream.connections,
  connectTimeoutMs: upstream.connectTimeoutMs,
  firstByteTimeoutMs: upstream.firstByteTimeoutMs,
  idleTimeoutMs: upstream.idleTimeoutMs,
})

/** The headers with the key of the upstream, for every request to it, whatever its format. */
export const credentialHeaders = ({ credentialFormat, secret }: Upstream) =>
  secret === null ? {} : credentialFormat.authorize(secret)

/** The origins of all upstreams of a catalogue. */
export const originsOf = ({ upstreams }: Catalogue) =>
  upstreams.map((upstream) => ({
    origin: new URL(upstream.baseUrl).origin,
    settings: settingsOf(upstream),
  }))
