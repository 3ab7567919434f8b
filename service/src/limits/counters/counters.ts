import type { Amounts, LimitedCall, Limits, LimitSettlement, Verdict } from '#limits/limits.ts'

/** Counts calls: in Redis for all processes, or in the memory of one. */
export type Counters = {
  admit(call: LimitedCall, limits: Limits): Promise<Verdict>
  /** Returns whether the slot was still held. */
  settle(settlement: LimitSettlement): Promise<boolean>
  read(organizationId: string): Promise<OrganizationUsage>
}

/** The current usage of an organization, and of its projects and keys with calls in the last day. */
export type OrganizationUsage = {
  organization: Amounts
  projects: ReadonlyMap<string, Amounts>
  keys: ReadonlyMap<string, Amounts>
}
