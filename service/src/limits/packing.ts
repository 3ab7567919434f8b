import type { Bucket, BucketCounters } from './buckets.ts'
import { type Amounts, type Limits, metrics, scopes, type Usage, type Verdict } from './limits.ts'
import type { HandOver } from './rolling-window.ts'

// The packed forms that limiter.lua reads and writes.

const requestsBytes = 4
const wideBytes = 6
const wideMax = 2 ** 48 - 1
const narrowMax = 2 ** 32 - 1

/** Per scope: four wide numbers and one narrow one; all bits set means unlimited. */
export function packLimits(limits: Limits): Buffer {
  const packed = Buffer.alloc(scopes.length * (4 * wideBytes + requestsBytes))
  let place = 0
  for (const scope of scopes) {
    const amounts = limits[scope]
    for (const metric of metrics) {
      const isNarrow = metric === 'concurrent_requests'
      place = isNarrow
        ? packed.writeUInt32LE(Math.min(amounts[metric], narrowMax), place)
        : packed.writeUIntLE(Math.min(amounts[metric], wideMax), place, wideBytes)
    }
  }
  return packed
}

export function unpackVerdict(packed: Buffer): Verdict {
  const [scope, metric] = [scopes[packed.readUInt8(1) - 1], metrics[packed.readUInt8(2) - 1]]
  const isAdmitted = packed.readUInt8(0) === 1
  const waitMs = packed.readUIntLE(9, wideBytes)
  return {
    nowMs: packed.readUIntLE(3, wideBytes),
    usage: unpackUsage(packed, 15),
    refusal: isAdmitted || !scope || !metric ? null : { scope, metric, waitMs },
  }
}

function unpackUsage(packed: Buffer, start: number): Usage {
  const bytesPerScope = 24
  const usage = scopes.map((scope, index): [string, Amounts] => {
    const place = start + index * bytesPerScope
    return [
      scope,
      {
        requests_per_minute: packed.readUInt32LE(place),
        requests_per_day: packed.readUInt32LE(place + 4),
        tokens_per_minute: packed.readUIntLE(place + 8, wideBytes),
        tokens_per_day: packed.readUIntLE(place + 14, wideBytes),
        concurrent_requests: packed.readUInt32LE(place + 20),
      },
    ]
  })
  return Object.fromEntries(usage) as Usage
}

const headBytes = 24
const bucketBytes = 14

/** The counters of one scope as the hash of an organization holds them. */
export function packCounters({ minute, day }: BucketCounters): Buffer {
  const packed = Buffer.alloc(headBytes + (minute.length + day.length) * bucketBytes)
  packed.writeUInt16LE(minute.length, 0)
  packed.writeUInt16LE(day.length, 2)
  writeSums(packed, 4, minute)
  writeSums(packed, 14, day)
  ;[...minute, ...day].forEach(({ id, requests, tokens }, index) => {
    const place = headBytes + index * bucketBytes
    packed.writeUInt32LE(id, place)
    packed.writeUInt32LE(requests, place + 4)
    packed.writeUIntLE(tokens, place + 8, wideBytes)
  })
  return packed
}

function writeSums(packed: Buffer, place: number, buckets: readonly Bucket[]) {
  packed.writeUInt32LE(
    buckets.reduce((total, { requests }) => total + requests, 0),
    place,
  )
  packed.writeUIntLE(
    buckets.reduce((total, { tokens }) => total + tokens, 0),
    place + 4,
    wideBytes,
  )
}

export function unpackCounters(packed: Buffer): BucketCounters {
  const [minutes, hours] = [packed.readUInt16LE(0), packed.readUInt16LE(2)]
  const buckets = Array.from({ length: minutes + hours }, (_, index): Bucket => {
    const place = headBytes + index * bucketBytes
    return {
      id: packed.readUInt32LE(place),
      requests: packed.readUInt32LE(place + 4),
      tokens: packed.readUIntLE(place + 8, wideBytes),
    }
  })
  return { minute: buckets.slice(0, minutes), day: buckets.slice(minutes) }
}

export function packKnown(known: HandOver['known']): Buffer {
  if (!known) return Buffer.alloc(0)
  const packed = Buffer.alloc(26)
  packed.writeUIntLE(known.atMs, 0, wideBytes)
  packed.writeUInt32LE(known.amounts.requests_per_minute, 6)
  packed.writeUIntLE(known.amounts.tokens_per_minute, 10, wideBytes)
  packed.writeUInt32LE(known.amounts.requests_per_day, 16)
  packed.writeUIntLE(known.amounts.tokens_per_day, 20, wideBytes)
  return packed
}
