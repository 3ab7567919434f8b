import type { UpstreamFormat } from '#formats/format.ts'
import type { Origin } from '#platform/origin-pools.ts'

import type { Catalogue, OriginPlace, Upstream } from './catalogue.ts'

type Address = Pick<
  Upstream,
  'baseUrl' | 'connections' | 'connectTimeoutMs' | 'firstByteTimeoutMs' | 'idleTimeoutMs'
>

export function originPlaceOf({ baseUrl, ...upstream }: Address): OriginPlace {
  const { origin, pathname } = new URL(baseUrl)
  const settings = {
    connections: upstream.connections,
    connectTimeoutMs: upstream.connectTimeoutMs,
    firstByteTimeoutMs: upstream.firstByteTimeoutMs,
    idleTimeoutMs: upstream.idleTimeoutMs,
  }
  return { origin: { origin, settings }, path: pathname.replace(/\/+$/, '') }
}

/** The headers with the key of the upstream, for every request to it, whatever its format. */
export const credentialHeaders = ({ credentialFormat, secret }: Upstream) =>
  secret === null ? {} : credentialFormat.authorize(secret)

type Headers = Readonly<Record<string, string>>
const known = new WeakMap<Upstream, Map<UpstreamFormat, Headers>>()

/** The headers of every model call to an upstream in one of its formats. */
export function callHeaders(upstream: Upstream, format: UpstreamFormat): Headers {
  const byFormat = known.get(upstream) ?? new Map<UpstreamFormat, Headers>()
  known.set(upstream, byFormat)
  const headers = byFormat.get(format) ?? {
    ...credentialHeaders(upstream),
    'content-type': 'application/json',
    accept: format.framing.mediaType,
    'accept-encoding': 'identity', // compression would delay and merge frames
    'user-agent': 'gatehouse',
  }
  byFormat.set(format, headers)
  return headers
}

/** The origins of all upstreams of a catalogue. */
export const originsOf = ({ upstreams }: Catalogue): readonly Origin[] =>
  upstreams.map(({ place }) => place.origin)
