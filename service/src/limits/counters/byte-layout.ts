/**
 * The bytes that packing.ts, quota-packing.ts and the Lua library exchange, and that Redis stores. Numbers are unsigned and
 * little-endian: u8, u16, u32 and u48. Scopes stand in the order of limits.ts, metrics and windows in that of
 * limit-metrics.ts; their numbers start at 1. The id of a bucket is its time divided by its length.
 *
 * Counters of a scope, a field of the hash:
 *   for each window: u16 number of buckets
 *   for each window: u32 requests, u48 tokens, the sums of its buckets
 *   for each window, for each bucket, the oldest first: u32 id, u32 requests, u48 tokens
 *
 * Limits, an argument of `admit`:
 *   for each scope, for each metric: u48 limit, or u32 where the metric counts slots; all bits set: unlimited
 *
 * Verdict, the answer of `admit`:
 *   u8 1 if the call is admitted, u8 number of the refusing scope, u8 number of the refusing metric (else 0)
 *   u48 time in ms, u48 wait in ms
 *   for each scope, for each metric: usage, in as many bytes as limit-metrics.ts says
 *
 * Last known usage of a scope, an argument of `absorb`:
 *   u48 time in ms
 *   for each window: u32 requests, u48 tokens
 *
 * Of quotas, for each counter of a period, in the order of the fields of the reservation:
 *   counter, a field of the hash: u48 requests, tokens, reserved tokens, credits, reserved credits
 *   limits, an argument of `admit`: u48 requests, tokens, credits; all bits set: unlimited
 *   known amounts, an argument of `admit`: u8 1 if known, u48 requests, tokens, credits
 *   answer of `admit`, after the verdict: u8 number of the refusing counter, u8 number of the refusing unit (else 0),
 *     for each counter of all periods: u8 1 if missing, u48 requests, tokens, credits, credits of ended calls
 *   answer of `settle`: u8 1 if the lease was held, for each counter of all periods: u48 credits of ended calls
 *
 * Processes of two releases read the same bytes while a release is rolled out: another layout takes the next
 * `layoutNumber`, which is part of the counters' keys, and the next version of the function library.
 */
export const [u8, u16, u32, u48] = [1, 2, 4, 6] as const
export type Width = typeof u8 | typeof u16 | typeof u32 | typeof u48

/** Writes numbers one after the other. One that does not fit is written with all bits set. */
export function createWriter(size: number) {
  const bytes = Buffer.alloc(size)
  let position = 0
  return {
    bytes,
    write(width: Width, value: number) {
      position = bytes.writeUIntLE(Math.min(value, 2 ** (8 * width) - 1), position, width)
    },
  }
}

/** Reads numbers one after the other. */
export function createReader(bytes: Buffer) {
  let position = 0
  return (width: Width): number => {
    const value = bytes.readUIntLE(position, width)
    position += width
    return value
  }
}
