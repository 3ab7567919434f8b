import type { Digest } from '#exports/destinations/destination.ts'

import { padNumber } from './object-name.ts'

/**
 * A digest as it is stored. Each names the one before it, so a digest that is missing or changed breaks the chain. It has
 * no signature: the checkpoints have one.
 */
export function writeDigest(prefix: string, digest: Digest) {
  const { orgId, objects, previous } = digest
  const [from, to] = [toTime(digest.from), toTime(digest.to)]
  const first = Math.min(...objects.map((object) => object.first))
  const last = Math.max(...objects.map((object) => object.last))
  // The time keeps apart the digest of an event and that of a checkpoint an hour later that has the same number.
  const time = from.slice(11, 16).replace(':', '')
  const range = `${padNumber(first)}-${padNumber(last)}`
  const key = `${prefix}digests/date=${from.slice(0, 10)}/digest-${time}-${range}.json`
  const json = {
    version: 1,
    org_id: orgId,
    from,
    to,
    first,
    last,
    previous: previous && { key: previous.key, sha256: previous.sha256 },
    objects: objects.map((object) => ({
      key: object.key,
      sha256: object.sha256,
      bytes: object.bytes,
      first: object.first,
      last: object.last,
    })),
  }
  return { key, first, last, text: `${JSON.stringify(json)}\n` }
}

const toTime = (text: string) => new Date(text).toISOString()
