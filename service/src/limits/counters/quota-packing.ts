import type { QuotaUsage, QuotaVerdict } from '#limits/quotas/quota-counts.ts'
import {
  type CallQuotas,
  type QuotaCounter,
  type QuotaReservation,
  quotaUnits,
} from '#limits/quotas/quota.ts'

import { createReader, createWriter, u48, u8 } from './byte-layout.ts'
import { verdictBytes } from './packing.ts'

// Packs and unpacks what quotas.lua reads and writes, in the order of byte-layout.ts.

export function packQuotaLimits({ counters }: QuotaReservation): Buffer {
  const { bytes, write } = createWriter(counters.length * quotaUnits.length * u48)
  for (const { limits } of counters) {
    for (const unit of quotaUnits) write(u48, limits[unit])
  }
  return bytes
}

export function packKnown({ counters }: QuotaReservation, { known }: CallQuotas): Buffer {
  if (!known) return Buffer.alloc(0)
  const { bytes, write } = createWriter(counters.length * (u8 + quotaUnits.length * u48))
  for (const counter of counters) {
    const amounts = known.amounts.get(counter)
    write(u8, amounts ? 1 : 0)
    for (const unit of quotaUnits) write(u48, amounts?.[unit] ?? 0)
  }
  return bytes
}

/** The answer about quotas after a packed verdict; undefined if there is none. */
export function unpackQuotas(packed: Buffer, { counters }: CallQuotas): QuotaVerdict | undefined {
  if (packed.length <= verdictBytes) return undefined
  const read = createReader(packed.subarray(verdictBytes))
  const [refusing, unitNumber] = [counters[read(u8) - 1], quotaUnits[read(u8) - 1]]
  const refusal = refusing && unitNumber ? { counter: refusing, unit: unitNumber } : null
  const missing: QuotaCounter[] = []
  const usage: QuotaUsage[] = []
  for (const counter of counters) {
    if (read(u8) === 1) missing.push(counter)
    const [requests, tokens, credits] = [read(u48), read(u48), read(u48)]
    usage.push({ requests, tokens, credits, settledCredits: read(u48) })
  }
  return { missing, refusal, usage: missing.length > 0 ? [] : usage }
}

/** The answer of `settle` for a call with quotas. */
export function unpackSettled(packed: Buffer, { counters }: CallQuotas) {
  const read = createReader(packed)
  const wasHeld = read(u8) === 1
  return { wasHeld, credits: counters.map(() => read(u48)) }
}
