import { hash } from 'node:crypto'

import { BoundedMap } from '#platform/bounded-map.ts'

/** Readers divide the log by shard. The number is fixed: an organization must never change its shard. */
const shardCount = 16

/** Of the organizations that have events at the moment. */
const knownShards = new BoundedMap<string, number>(10_000)

export function shardOf(organizationId: string): number {
  const known = knownShards.get(organizationId)
  if (known !== undefined) return known
  const shard = hash('sha256', organizationId, 'buffer').readUInt16BE(0) % shardCount
  knownShards.set(organizationId, shard)
  return shard
}
