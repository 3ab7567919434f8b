import type { OriginSettings } from '#platform/origin-pools.ts'

import type { Catalogue, Upstream } from './catalogue.ts'

export const settingsOf = (upstream: Upstream): OriginSettings => ({
  connections: upstream.connections,
  connectTimeoutMs: upstream.connect_timeout_ms,
  firstByteTimeoutMs: upstream.first_byte_timeout_ms,
  idleTimeoutMs: upstream.idle_timeout_ms,
})

/** Everywhere a catalogue may lead. */
export const originsOf = ({ upstreams }: Catalogue) =>
  upstreams.map((upstream) => ({
    origin: new URL(upstream.base_url).origin,
    settings: settingsOf(upstream),
  }))
