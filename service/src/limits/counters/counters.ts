import type {
  Amounts,
  LimitedCall,
  Limits,
  LimitSettlement,
  SettledSlot,
  Verdict,
} from '#limits/limits.ts'

/** Counts calls: in Redis for all processes, or in the memory of one. */
export type Counters = {
  admit(call: LimitedCall, limits: Limits): Promise<Verdict>
  settle(settlement: LimitSettlement): Promise<SettledSlot>
  read(organizationId: string): Promise<OrganizationUsage>
}

/** The current usage of an organization, and of its projects and keys with calls in the last day. */
export type OrganizationUsage = {
  organization: Amounts
  projects: ReadonlyMap<string, Amounts>
  keys: ReadonlyMap<string, Amounts>
}
