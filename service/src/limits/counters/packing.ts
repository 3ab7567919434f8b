import { limitMetrics, usedIn, windowNames } from '#limits/limit-metrics.ts'
import { type Amounts, type Limits, scopes, type Verdict } from '#limits/limits.ts'

import type { ScopeCounts } from './absorb.ts'
import { type Bucket, type BucketCounters, sum } from './buckets.ts'
import { createReader, createWriter, u16, u32, u48, u8, type Width } from './byte-layout.ts'

// Packs and unpacks what limiter.lua reads and writes, in the order of byte-layout.ts.

const sumsBytes = u32 + u48
const headBytes = windowNames.length * (u16 + sumsBytes)
const bucketBytes = u32 + u32 + u48

const limitWidth = ({ unit }: (typeof limitMetrics)[number]): Width =>
  unit === 'slots' ? u32 : u48

export function packLimits(limits: Limits): Buffer {
  const limitsBytes = limitMetrics.reduce((bytes, row) => bytes + limitWidth(row), 0)
  const { bytes, write } = createWriter(scopes.length * limitsBytes)
  for (const scope of scopes) {
    for (const row of limitMetrics) write(limitWidth(row), limits[scope][row.metric])
  }
  return bytes
}

const verdictHeadBytes = 3 * u8 + 2 * u48
const usageBytes = limitMetrics.reduce((sum, { bytes }) => sum + bytes, 0)
/** What follows them is about quotas. */
export const verdictBytes = verdictHeadBytes + scopes.length * usageBytes

/** Read at fixed places and not by a loop over the tables, because every call has a verdict. */
export function unpackVerdict(packed: Buffer): Verdict {
  const isAdmitted = packed[0] === 1
  const scope = scopes[(packed[1] ?? 0) - 1]
  const metric = limitMetrics[(packed[2] ?? 0) - 1]?.metric
  return {
    nowMs: packed.readUIntLE(3 * u8, u48),
    usage: {
      organization: unpackUsage(packed, verdictHeadBytes),
      project: unpackUsage(packed, verdictHeadBytes + usageBytes),
      key: unpackUsage(packed, verdictHeadBytes + 2 * usageBytes),
    },
    refusal:
      isAdmitted || !scope || !metric
        ? null
        : { scope, metric, waitMs: packed.readUIntLE(3 * u8 + u48, u48) },
  }
}

/** The order and the widths are those of limit-metrics.ts. */
const unpackUsage = (packed: Buffer, start: number): Amounts => ({
  requests_per_minute: packed.readUInt32LE(start),
  requests_per_day: packed.readUInt32LE(start + u32),
  tokens_per_minute: packed.readUIntLE(start + 2 * u32, u48),
  tokens_per_day: packed.readUIntLE(start + 2 * u32 + u48, u48),
  concurrent_requests: packed.readUInt32LE(start + 2 * u32 + 2 * u48),
})

export function packCounters(counters: BucketCounters): Buffer {
  const buckets = windowNames.flatMap((window) => counters[window])
  const { bytes, write } = createWriter(headBytes + buckets.length * bucketBytes)
  for (const window of windowNames) write(u16, counters[window].length)
  for (const window of windowNames) {
    write(u32, sum(counters[window], 'requests'))
    write(u48, sum(counters[window], 'tokens'))
  }
  for (const { id, requests, tokens } of buckets) {
    write(u32, id)
    write(u32, requests)
    write(u48, tokens)
  }
  return bytes
}

export function unpackCounters(packed: Buffer): BucketCounters {
  const read = createReader(packed)
  const counts = windowNames.map((window) => [window, read(u16)] as const)
  for (const _ of windowNames) {
    read(u32) // the sums follow from the buckets
    read(u48)
  }
  const readBucket = (): Bucket => ({ id: read(u32), requests: read(u32), tokens: read(u48) })
  const counters = counts.map(([window, length]) => [window, Array.from({ length }, readBucket)])
  return Object.fromEntries(counters) as BucketCounters
}

export function packLastKnown(lastKnown: ScopeCounts['lastKnown']): Buffer {
  if (!lastKnown) return Buffer.alloc(0)
  const { bytes, write } = createWriter(u48 + windowNames.length * sumsBytes)
  write(u48, lastKnown.atMs)
  for (const window of windowNames) {
    write(u32, usedIn(lastKnown.amounts, window, 'requests'))
    write(u48, usedIn(lastKnown.amounts, window, 'tokens'))
  }
  return bytes
}
