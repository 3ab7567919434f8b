import { type LimitWindow, windowMetrics, windowNames, windows } from '#limits/limit-metrics.ts'
import {
  type LimitedCall,
  type Limits,
  type LimitSettlement,
  type Refusal,
  scopes,
  type ScopeUsage,
  type SettledSlot,
  type Verdict,
} from '#limits/limits.ts'
import { read as readQuotas, reserve, settleQuotas } from '#limits/quotas/quota-counts.ts'

import {
  addTo,
  type Amount,
  type Bucket,
  bucketAt,
  type BucketCounters,
  createCounters,
  leavesAtMs,
  liveBuckets,
} from './buckets.ts'
import { leaseName, organizationField, scopeField } from './counter-names.ts'
import { isHeld, type LeaseOfOrganization, type OrganizationCounts } from './organization-counts.ts'
import { scopeUsage } from './usage.ts'

/**
 * The algorithm of the limiter, on plain objects. It is the model that limiter.lua is tested against, the
 * limiter of a single process, and what a process falls back to when Redis is away.
 *
 * Windows roll. Calls are counted in buckets of one second for the minute and of one hour for the day; a bucket
 * counts until its *end* is older than the window, so that no 60 seconds and no 24 hours ever hold more than
 * the limit (fixed windows let twice as much through around a boundary). One decision covers every limit of
 * the three scopes: either all of them count the call, or none does. A slot is a lease that expires, so that
 * a process that dies frees its slots. Time is a parameter.
 */
export function admit(
  counts: OrganizationCounts,
  call: LimitedCall,
  limits: Limits,
  nowMs: number,
): Verdict {
  const usage = scopeUsage(counts, call, nowMs)
  // The answer to an earlier try was lost: it has counted the call.
  if (isHeld(counts, call, nowMs))
    return { nowMs, usage, refusal: null, ...knownQuotas(counts, call) }
  const refusal = findRefusal(counts, call, { limits, usage, nowMs })
  if (refusal) return { nowMs, usage, refusal }
  const quotas =
    call.quotas && reserve(counts.quotas, call.quotas, { nowMs, endsAtMs: nowMs + call.leaseMs })
  if (quotas && quotas.missing.length > 0) return { nowMs, usage, refusal, quotas }
  if (quotas?.refusal) {
    // The call leaves an event, so it counts as a request of the limits: refused calls must not fill the log.
    count(counts, { ...call, tokens: 0 }, nowMs)
    return { nowMs, usage: scopeUsage(counts, call, nowMs), refusal, quotas }
  }
  const secondsBefore = countSeconds(counts, nowMs)
  count(counts, call, nowMs)
  if (call.leaseMs > 0) {
    counts.leases.set(leaseName(call), nowMs + call.leaseMs)
    const isNewSecond = countSeconds(counts, nowMs) > secondsBefore
    if (isNewSecond) dropExpiredLeases(counts, nowMs) // at most once a second
  }
  return { nowMs, usage: scopeUsage(counts, call, nowMs), refusal, ...(quotas && { quotas }) }
}

const knownQuotas = (counts: OrganizationCounts, { quotas }: LimitedCall) =>
  quotas && { quotas: { missing: [], refusal: null, usage: readQuotas(counts.quotas, quotas) } }

/** Counts a call in its three scopes, whatever the limits. */
export function count(counts: OrganizationCounts, call: LimitedCall, nowMs: number) {
  for (const scope of scopes) {
    add(
      counts,
      scopeField(scope, call),
      { requests: 1, tokens: inWindows(call, call.tokens) },
      nowMs,
    )
  }
}

type Counted = Pick<LimitedCall, 'countsInMinuteOnly'>

const inWindows = ({ countsInMinuteOnly }: Counted, tokens: number): Amount['tokens'] => ({
  minute: tokens,
  day: countsInMinuteOnly ? 0 : tokens,
})

/**
 * Frees the slot. Unused tokens are given back to the buckets of the admission, once; tokens used beyond the
 * reservation count now.
 */
export function settle(
  counts: OrganizationCounts,
  settlement: LimitSettlement,
  nowMs: number,
): SettledSlot {
  const wasHeld = settleSlot(counts, settlement, nowMs)
  const { quotas, usedCredits = 0 } = settlement
  if (!quotas) return { wasHeld, credits: [] }
  const { day: tokens } = inWindows(settlement, settlement.used)
  settleQuotas(counts.quotas, quotas, { tokens, credits: usedCredits })
  const usage = readQuotas(counts.quotas, quotas)
  return { wasHeld, credits: usage.map(({ settledCredits }) => settledCredits) }
}

function settleSlot(counts: OrganizationCounts, settlement: LimitSettlement, nowMs: number) {
  const wasHeld = isHeld(counts, settlement, nowMs)
  counts.leases.delete(leaseName(settlement))
  const difference = settlement.used - settlement.reserved
  if (difference === 0 || (difference < 0 && !wasHeld)) return wasHeld
  const tokens = inWindows(settlement, Math.abs(difference))
  for (const scope of scopes) {
    const field = scopeField(scope, settlement)
    if (difference > 0) add(counts, field, { requests: 0, tokens }, nowMs)
    else giveBack(counts.counters.get(field), tokens, settlement.admittedAtMs)
  }
  return wasHeld
}

/**
 * Extends leases and returns how many were still held. A lost lease is added again, even if all slots are
 * taken: its call is running.
 */
export function renew(
  counts: OrganizationCounts,
  leases: readonly LeaseOfOrganization[],
  leaseMs: number,
  nowMs: number,
): number {
  let held = 0
  for (const lease of leases) {
    if (isHeld(counts, lease, nowMs)) held++
    counts.leases.set(leaseName(lease), nowMs + leaseMs)
  }
  return held
}

/** When a slot gets free is unknown. */
const slotWaitMs = 1000

type Question = { limits: Limits; usage: ScopeUsage; nowMs: number }

/** The limit with the longest wait, of equal waits the first in the order of metrics; slots come before all windows. */
function findRefusal(
  counts: OrganizationCounts,
  call: LimitedCall,
  { limits, usage, nowMs }: Question,
): Refusal | null {
  let longest = findFullScope(limits, usage)
  const tokens = inWindows(call, call.tokens)
  for (const { metric, window, unit } of windowMetrics) {
    for (const scope of scopes) {
      const cost = unit === 'requests' ? 1 : tokens[window]
      const excess = usage[scope][metric] + cost - limits[scope][metric]
      if (excess <= 0) continue
      const counters = counts.counters.get(scopeField(scope, call))
      const buckets = liveBuckets(counters, window, nowMs)
      const waitMs = findWait(buckets, { excess, unit, window, nowMs })
      if (!longest || waitMs > longest.waitMs) longest = { scope, metric, waitMs }
    }
  }
  return longest
}

/** The narrowest scope without a free slot. */
function findFullScope(limits: Limits, usage: ScopeUsage): Refusal | null {
  const metric = 'concurrent_requests'
  const full = scopes.findLast((scope) => usage[scope][metric] >= limits[scope][metric])
  return full ? { scope: full, metric, waitMs: slotWaitMs } : null
}

type Shortage = { excess: number; unit: 'requests' | 'tokens'; window: LimitWindow; nowMs: number }

/** How long until enough buckets have left the window; a whole window if the call is larger than the limit. */
function findWait(buckets: readonly Bucket[], { excess, unit, window, nowMs }: Shortage): number {
  let freed = 0
  for (const bucket of buckets) {
    freed += bucket[unit]
    if (freed >= excess) return leavesAtMs(window, bucket.id) - nowMs
  }
  return windows[window].lengthMs
}

function add(counts: OrganizationCounts, field: string, amount: Amount, nowMs: number) {
  const counters = counts.counters.get(field) ?? createCounters()
  counts.counters.set(field, counters)
  addTo(counters, amount, nowMs)
}

/** Tokens whose bucket is gone, or holds fewer by now, are not given back. */
function giveBack(
  counters: BucketCounters | undefined,
  tokens: Amount['tokens'],
  admittedAtMs: number,
) {
  for (const window of windowNames) {
    const id = bucketAt(window, admittedAtMs)
    const bucket = counters?.[window].find((each) => each.id === id)
    if (bucket) bucket.tokens = Math.max(0, bucket.tokens - tokens[window])
  }
}

/** In how many seconds of the last minute the organization had calls. */
const countSeconds = ({ counters }: OrganizationCounts, nowMs: number) =>
  liveBuckets(counters.get(organizationField), 'minute', nowMs).length

function dropExpiredLeases({ leases }: OrganizationCounts, nowMs: number) {
  for (const [name, endsAtMs] of leases) if (endsAtMs < nowMs) leases.delete(name)
}
