import { type Metric, metricNames } from './limit-metrics.ts'
import type { QuotaVerdict } from './quotas/quota-counts.ts'
import type { CallQuotas } from './quotas/quota.ts'

/** Where a call is counted: in its organization, in its project and for its key. */
export const scopes = ['organization', 'project', 'key'] as const
export type Scope = (typeof scopes)[number]

/** An amount for each metric: a limit, or how much of it is used. `Infinity` is no limit. */
export type Amounts = Readonly<Record<Metric, number>>

export type Limits = Readonly<Record<Scope, Amounts>>
export type ScopeUsage = Readonly<Record<Scope, Amounts>>

/** The ids of a call's scopes. Where a scope does not apply, its id is '' and it has no limits. */
export type ScopeIds = { organizationId: string; projectId: string; keyId: string }

/** A call that asks to be admitted. */
export type LimitedCall = ScopeIds & {
  /** How many tokens it reserves. */
  tokens: number
  /** Its tokens count in the minute, but neither in the day nor in quotas. */
  countsInMinuteOnly?: boolean | undefined
  /** The id of the request. Asking again with it, after an answer was lost, counts once. */
  leaseId: string
  /** How long its slot is held without a renewal; 0: it takes no slot. */
  leaseMs: number
  /** What it reserves in quotas and budgets, if it counts in any; only for calls with a slot. */
  quotas?: CallQuotas | undefined
}

/** The decision about a call, and the usage after it. A refused call is counted in none of its scopes. */
export type Verdict = {
  nowMs: number
  usage: ScopeUsage
  refusal: Refusal | null
  /** For calls with quotas that no limit refuses. One that a quota refuses is counted as a request, without tokens. */
  quotas?: QuotaVerdict
}

/** Whether the call has got its slot. */
export const isAdmitted = ({ refusal, quotas }: Verdict): boolean =>
  refusal === null && (!quotas || (quotas.refusal === null && quotas.missing.length === 0))

/** The limit with the longest wait, and after how long the same call would fit. */
export type Refusal = { scope: Scope; metric: Metric; waitMs: number }

/** The slot of a running call. */
export type Lease = ScopeIds & { leaseId: string; quotas?: CallQuotas | undefined }

/** The end of a call: its slot is freed, and what it reserved is corrected to what it used. */
export type LimitSettlement = Lease & {
  reserved: number
  used: number
  /** As when it was admitted. */
  countsInMinuteOnly?: boolean | undefined
  /** With quotas: what the call has cost. */
  usedCredits?: number | undefined
  /** When it was admitted, by the clock of the counters. */
  admittedAtMs: number
}

/** What is known after a call has ended: for each of its quota counters the credits of all ended calls. */
export type SettledSlot = { wasHeld: boolean; credits: readonly number[] }

export const unlimited = Object.fromEntries(
  metricNames.map((metric) => [metric, Infinity]),
) as Amounts

/** Leases expire a minute after their process has died. */
export const leaseMs = 60_000
