import {
  addTo,
  type Bucket,
  type BucketCounters,
  bucketAt,
  leavesAtMs,
  liveBuckets,
  merge,
  sum,
  type Unit,
  type Window,
  windows,
} from './buckets.ts'
import type { UsageOfAll } from './counters.ts'
import {
  type Amounts,
  type Attempt,
  type Limits,
  type Metric,
  type Refusal,
  type Scope,
  scopes,
  type Settlement,
  type Usage,
  type Verdict,
} from './limits.ts'
import { fieldOf, leaseName } from './names.ts'

/**
 * The algorithm of the limiter, on plain objects: the model its Redis twin is tested against, the limiter
 * of a single process, and what a process falls back to when Redis is away.
 *
 * Windows roll. What happened is kept in buckets of one second for the minute and of one hour for the
 * day; a bucket counts until its *end* is older than the window, so that no 60 seconds and no 24 hours
 * ever hold more than the limit (fixed windows let twice as much through around a boundary). One decision
 * covers every limit of the three scopes: either all of them count the call, or none does. A slot is a
 * lease that ends by itself, so that who dies frees it. Time is a parameter.
 */

/** What is remembered of one organization. */
export type Windows = {
  counters: Map<string, BucketCounters>
  /** When each lease ends; its name says whose it is. */
  leases: Map<string, number>
}

export const createWindows = (): Windows => ({ counters: new Map(), leases: new Map() })

/** How long a call that found all slots taken should wait: nobody knows when one gets free. */
const slotWaitMs = 1000

const counted: readonly { metric: Metric; window: Window; unit: Unit }[] = [
  { metric: 'requests_per_minute', window: 'minute', unit: 'requests' },
  { metric: 'requests_per_day', window: 'day', unit: 'requests' },
  { metric: 'tokens_per_minute', window: 'minute', unit: 'tokens' },
  { metric: 'tokens_per_day', window: 'day', unit: 'tokens' },
]

type Place = Pick<Attempt, 'projectId' | 'keyId'>

export function admit(state: Windows, attempt: Attempt, limits: Limits, nowMs: number): Verdict {
  const usage = usageOf(state, attempt, nowMs)
  // The answer to an earlier try was lost: it holds its slot already.
  if (isHeld(state, attempt, nowMs)) return { nowMs, usage, refusal: null }
  const refusal = refusalOf(state, attempt, { limits, usage, nowMs })
  if (refusal) return { nowMs, usage, refusal }
  const seconds = secondsOf(state, nowMs)
  count(state, attempt, nowMs)
  if (attempt.leaseMs > 0) {
    state.leases.set(leaseName(attempt), nowMs + attempt.leaseMs)
    if (secondsOf(state, nowMs) > seconds) dropEnded(state, nowMs) // at most once a second
  }
  return { nowMs, usage: usageOf(state, attempt, nowMs), refusal: null }
}

/** Counts a call in its three scopes, whatever the limits. */
export function count(state: Windows, attempt: Attempt, nowMs: number) {
  for (const scope of scopes) {
    add(state, fieldOf(scope, attempt), { requests: 1, tokens: attempt.tokens }, nowMs)
  }
}

/** Returns whether the slot was still held. What is given back is given back once, what is over counts now. */
export function settle(state: Windows, settlement: Settlement, nowMs: number): boolean {
  const wasHeld = isHeld(state, settlement, nowMs)
  state.leases.delete(leaseName(settlement))
  const difference = settlement.used - settlement.reserved
  if (difference === 0 || (difference < 0 && !wasHeld)) return wasHeld
  for (const scope of scopes) {
    const field = fieldOf(scope, settlement)
    if (difference > 0) add(state, field, { requests: 0, tokens: difference }, nowMs)
    else giveBack(state.counters.get(field), -difference, settlement.admittedAtMs)
  }
  return wasHeld
}

/**
 * Holds slots longer; returns how many were still held. One that was lost is taken again, full or not:
 * its call is running all the same.
 */
export function renew(
  state: Windows,
  leases: readonly LeasePlace[],
  leaseMs: number,
  nowMs: number,
): number {
  let held = 0
  for (const lease of leases) {
    if (isHeld(state, lease, nowMs)) held++
    state.leases.set(leaseName(lease), nowMs + leaseMs)
  }
  return held
}

type LeasePlace = Place & { leaseId: string }

const isHeld = (state: Windows, lease: LeasePlace, nowMs: number) =>
  (state.leases.get(leaseName(lease)) ?? -Infinity) >= nowMs

/** What counts at this moment in everything that is in use. */
export function overview(state: Windows, nowMs: number): UsageOfAll {
  const [projects, keys] = [new Map<string, Amounts>(), new Map<string, Amounts>()]
  for (const field of state.counters.keys()) {
    const [kind, id] = [field.slice(0, 1), field.slice(1)]
    if (kind === 'p') projects.set(id, usageOf(state, { projectId: id, keyId: '' }, nowMs).project)
    if (kind === 'k') keys.set(id, usedByKey(state, id, nowMs))
  }
  return {
    organization: usageOf(state, { projectId: '', keyId: '' }, nowMs).organization,
    projects,
    keys,
  }
}

/** A key belongs to one project, so its leases need no project to be told apart. */
function usedByKey(state: Windows, keyId: string, nowMs: number): Amounts {
  const { key } = usageOf(state, { projectId: '', keyId }, nowMs)
  const leases = [...state.leases].filter(
    ([name, endsAtMs]) => endsAtMs >= nowMs && name.endsWith(`|k${keyId}|`),
  )
  return { ...key, concurrent_requests: leases.length }
}

/** What counts at this moment, in each scope of the call. */
function usageOf(state: Windows, place: Place, nowMs: number): Usage {
  const live = [...state.leases].filter(([, endsAtMs]) => endsAtMs >= nowMs).map(([name]) => name)
  const ofProject = live.filter((name) => name.includes(`|p${place.projectId}|`))
  const ofKey = ofProject.filter((name) => name.endsWith(`|k${place.keyId}|`))
  const slots = { organization: live, project: ofProject, key: ofKey }
  const used = (scope: Scope): Amounts => {
    const counters = state.counters.get(fieldOf(scope, place))
    const sums = counted.map(({ metric, window, unit }) => [
      metric,
      sum(liveBuckets(counters, window, nowMs), unit),
    ])
    return { ...Object.fromEntries(sums), concurrent_requests: slots[scope].length } as Amounts
  }
  return {
    organization: used('organization'),
    project: used('project'),
    key: used('key'),
  }
}

type Question = { limits: Limits; usage: Usage; nowMs: number }

/** Of the limits in the way the one with the longest wait; a slot only when nothing else is. */
function refusalOf(state: Windows, attempt: Attempt, question: Question): Refusal | null {
  const { limits, usage, nowMs } = question
  let longest: Refusal | null = null
  for (const { metric, window, unit } of counted) {
    for (const scope of scopes) {
      const cost = unit === 'requests' ? 1 : attempt.tokens
      const excess = usage[scope][metric] + cost - limits[scope][metric]
      if (excess <= 0) continue
      const counters = state.counters.get(fieldOf(scope, attempt))
      const waitMs = waitFor(liveBuckets(counters, window, nowMs), { excess, unit, window, nowMs })
      if (!longest || waitMs > longest.waitMs) longest = { scope, metric, waitMs }
    }
  }
  if (longest) return longest
  const metric = 'concurrent_requests'
  const full = scopes.findLast((scope) => usage[scope][metric] >= limits[scope][metric])
  return full ? { scope: full, metric, waitMs: slotWaitMs } : null
}

type Wanted = { excess: number; unit: Unit; window: Window; nowMs: number }

/** Until enough buckets have left the window; a whole window for what is larger than its limit. */
function waitFor(buckets: readonly Bucket[], { excess, unit, window, nowMs }: Wanted): number {
  let freed = 0
  for (const bucket of buckets) {
    freed += bucket[unit]
    if (freed >= excess) return leavesAtMs(window, bucket.id) - nowMs
  }
  return windows[window].lengthMs
}

type Amount = { requests: number; tokens: number }

function add(state: Windows, field: string, amount: Amount, nowMs: number) {
  const counters = state.counters.get(field) ?? { minute: [], day: [] }
  state.counters.set(field, counters)
  addTo(counters, amount, nowMs)
}

/** Into the buckets of the reservation; what they do not hold any more is not given back. */
function giveBack(counters: BucketCounters | undefined, tokens: number, admittedAtMs: number) {
  for (const window of ['minute', 'day'] as const) {
    const id = bucketAt(window, admittedAtMs)
    const bucket = counters?.[window].find((each) => each.id === id)
    if (bucket) bucket.tokens = Math.max(0, bucket.tokens - tokens)
  }
}

/** How many seconds of the organization's last minute have counted something. */
const secondsOf = (state: Windows, nowMs: number) =>
  liveBuckets(state.counters.get('o'), 'minute', nowMs).length

function dropEnded(state: Windows, nowMs: number) {
  for (const [name, endsAtMs] of state.leases) if (endsAtMs < nowMs) state.leases.delete(name)
}

/** What one place has counted, to be added where everybody counts. */
export type HandOver = {
  field: string
  counters: BucketCounters
  /** What everybody's count was when it was last seen: used if nothing is left of it. */
  known: { atMs: number; amounts: Amounts } | null
}

/** Adds what was counted elsewhere meanwhile, and what was known but is not there any more. */
export function absorb(state: Windows, handOvers: readonly HandOver[], nowMs: number) {
  for (const { field, counters, known } of handOvers) {
    const mine = state.counters.get(field)
    const merged = { minute: [], day: [] } as BucketCounters
    for (const window of ['minute', 'day'] as const) {
      const own = liveBuckets(mine, window, nowMs)
      const lost = known && !mine ? missing(window, known, nowMs) : []
      merged[window] = merge(merge(own, lost), liveBuckets(counters, window, nowMs))
    }
    if (merged.day.length > 0) state.counters.set(field, merged)
  }
}

type Known = NonNullable<HandOver['known']>

/** What is known of a scope that is not there any more, in one bucket; nothing if it has left the window. */
function missing(window: Window, { atMs, amounts }: Known, nowMs: number): Bucket[] {
  const id = bucketAt(window, atMs)
  if (leavesAtMs(window, id) <= nowMs) return []
  const requests = amounts[`requests_per_${window}`]
  const tokens = amounts[`tokens_per_${window}`]
  return requests > 0 || tokens > 0 ? [{ id, requests, tokens }] : []
}
