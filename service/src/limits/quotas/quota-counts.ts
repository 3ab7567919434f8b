import { BoundedMap } from '#platform/bounded-map.ts'

import type {
  CallQuotas,
  QuotaAmounts,
  QuotaCounter,
  QuotaReservation,
  QuotaUnit,
} from './quota.ts'
import { quotaUnits } from './quota.ts'

/**
 * The algorithm of quotas, on plain objects: the twin of quotas.lua, as rolling-window.ts is of limiter.lua. Both must
 * decide alike, and a test compares them.
 *
 * A counter has what calls have used and what running calls reserve. It exists once its amounts were loaded from the
 * database; until then nothing is decided. What a call reserves expires with its lease, so a process that dies gives it
 * back; the request that was counted stays counted, because the sweep of holds will count it too.
 */
export type QuotaCounts = {
  /** By the names of the period and the field. One that is dropped is loaded again. */
  counters: Map<string, QuotaCount>
  /** By the name of the period: when each reservation expires, by its name. */
  reservations: Map<string, Map<string, number>>
}

type QuotaCount = {
  requests: number
  tokens: number
  credits: number
  reservedTokens: number
  reservedCredits: number
  /** The amounts that were loaded. Only what they left is divided among processes. */
  base: QuotaAmounts
}

export type QuotaUsage = QuotaAmounts & {
  /** The credits of calls that have ended. */
  settledCredits: number
}

export type QuotaVerdict = {
  /** Counters that must be loaded first: then the call was neither refused nor counted. */
  missing: readonly QuotaCounter[]
  refusal: { counter: QuotaCounter; unit: QuotaUnit } | null
  /** In the order of the call's counters, with all that is reserved; empty if some are missing. */
  usage: readonly QuotaUsage[]
}

/** Loaded amounts that are older could miss calls that have ended since. */
const knownMaxMs = 2000

const countersMax = 50_000

export const createQuotaCounts = (): QuotaCounts => ({
  counters: new BoundedMap(countersMax),
  reservations: new Map(),
})

const nameOf = ({ period, field }: QuotaCounter) => `${period.name} ${field}`
const nothing: QuotaAmounts = { requests: 0, tokens: 0, credits: 0 }

type Times = { nowMs: number; endsAtMs: number }

/** Reserves what a call may use in all of its counters, or in none. */
export function reserve(counts: QuotaCounts, quotas: CallQuotas, times: Times): QuotaVerdict {
  const { nowMs, endsAtMs } = times
  dropEnded(counts, quotas)
  for (const each of quotas.reservations) giveBackExpired(counts, each, nowMs)
  const missing = quotas.counters.filter((each) => !find(counts, each, quotas, nowMs))
  if (missing.length > 0) return { missing, refusal: null, usage: [] }
  const counters = quotas.counters.map((each) => {
    const found = find(counts, each, quotas, nowMs) as QuotaCount
    counts.counters.set(nameOf(each), found)
    return found
  })
  const refusal = findRefusal(quotas, counters)
  if (refusal) return { missing, refusal, usage: read(counts, quotas) }
  for (const count of counters) {
    count.requests++
    count.reservedTokens += quotas.tokens
    count.reservedCredits += quotas.credits
  }
  for (const each of quotas.reservations) reservationsOf(counts, each).set(each.name, endsAtMs)
  return { missing, refusal: null, usage: read(counts, quotas) }
}

/** The usage of a call's counters; 0 where there is none. */
export const read = (counts: QuotaCounts, { counters }: CallQuotas): QuotaUsage[] =>
  counters.map((each) => {
    const found = counts.counters.get(nameOf(each))
    return {
      requests: found?.requests ?? 0,
      tokens: (found?.tokens ?? 0) + (found?.reservedTokens ?? 0),
      credits: (found?.credits ?? 0) + (found?.reservedCredits ?? 0),
      settledCredits: found?.credits ?? 0,
    }
  })

/** Replaces what a call reserved by what it used. If the reservation has expired or was lost, the usage is added. */
export function settleQuotas(
  counts: QuotaCounts,
  quotas: CallQuotas,
  used: { tokens: number; credits: number },
): void {
  for (const each of quotas.reservations) {
    const wasReserved = reservationsOf(counts, each).delete(each.name)
    for (const counter of each.counters) {
      const count = counts.counters.get(nameOf(counter))
      if (!count) continue
      if (wasReserved) giveBack(count, quotas)
      count.tokens += used.tokens
      count.credits += used.credits
    }
  }
}

/** Extends what running calls reserve. What was lost is reserved again, with its request. */
export function renewQuotas(counts: QuotaCounts, quotas: CallQuotas, endsAtMs: number): void {
  for (const each of quotas.reservations) {
    const reservations = reservationsOf(counts, each)
    const isLost = !reservations.has(each.name)
    reservations.set(each.name, endsAtMs)
    if (!isLost) continue
    for (const counter of each.counters) {
      const count = counts.counters.get(nameOf(counter))
      if (!count) continue
      count.requests++
      count.reservedTokens += quotas.tokens
      count.reservedCredits += quotas.credits
    }
  }
}

/** The counter, or a new one made from its known amounts and the reservations of running calls. */
function find(
  counts: QuotaCounts,
  counter: QuotaCounter,
  { known }: CallQuotas,
  nowMs: number,
): QuotaCount | undefined {
  const found = counts.counters.get(nameOf(counter))
  if (found) return found
  const base = known && nowMs - known.askedAtMs <= knownMaxMs && known.amounts.get(counter)
  if (!base) return undefined
  const count = { ...nothing, ...base, reservedTokens: 0, reservedCredits: 0, base }
  for (const name of counts.reservations.get(counter.period.name)?.keys() ?? []) {
    const { tokens, credits, fields } = readName(name)
    if (!fields.includes(counter.field)) continue
    count.requests++
    count.reservedTokens += tokens
    count.reservedCredits += credits
  }
  return count
}

function findRefusal(
  { counters, tokens, credits, sharedBy }: CallQuotas,
  counts: readonly QuotaCount[],
): QuotaVerdict['refusal'] {
  for (const [index, counter] of counters.entries()) {
    const count = counts[index] as QuotaCount
    const wanted = {
      requests: count.requests + 1,
      tokens: count.tokens + count.reservedTokens + tokens,
      credits: count.credits + count.reservedCredits + credits,
    }
    const share = (unit: QuotaUnit) => {
      const left = Math.max(0, counter.limits[unit] - count.base[unit])
      return sharedBy === 1 ? counter.limits[unit] : count.base[unit] + Math.floor(left / sharedBy)
    }
    // A quota may have been lowered below its usage. It refuses no call that needs nothing of it.
    const asked = { requests: 1, tokens, credits }
    const unit = quotaUnits.find((each) => asked[each] > 0 && wanted[each] > share(each))
    if (unit) return { counter, unit }
  }
  return null
}

function giveBackExpired(counts: QuotaCounts, { period }: QuotaReservation, nowMs: number) {
  const reservations = counts.reservations.get(period.name)
  for (const [name, endsAtMs] of reservations ?? []) {
    if (endsAtMs >= nowMs) continue
    reservations?.delete(name)
    const { tokens, credits, fields } = readName(name)
    for (const field of fields) {
      const count = counts.counters.get(`${period.name} ${field}`)
      if (count) giveBack(count, { tokens, credits })
    }
  }
}

/** Never below 0, because a counter that was loaded in the meantime may lack what is given back. */
function giveBack(count: QuotaCount, { tokens, credits }: { tokens: number; credits: number }) {
  count.reservedTokens = Math.max(0, count.reservedTokens - tokens)
  count.reservedCredits = Math.max(0, count.reservedCredits - credits)
}

function reservationsOf(counts: QuotaCounts, { period }: QuotaReservation): Map<string, number> {
  const found = counts.reservations.get(period.name) ?? new Map<string, number>()
  counts.reservations.set(period.name, found)
  return found
}

function readName(name: string) {
  const [, tokens, credits, ...fields] = name.split('|')
  return { tokens: Number(tokens), credits: Number(credits), fields }
}

/** A process may count for months, so the counters of other periods are dropped once no running call uses them. */
function dropEnded(counts: QuotaCounts, { reservations }: CallQuotas) {
  const periodsMax = 12
  if (counts.reservations.size <= periodsMax) return
  const current = new Set(reservations.map(({ period }) => period.name))
  for (const [name, running] of counts.reservations) {
    if (running.size > 0 || current.has(name)) continue
    counts.reservations.delete(name)
    for (const counter of counts.counters.keys()) {
      if (counter.startsWith(`${name} `)) counts.counters.delete(counter)
    }
  }
}
