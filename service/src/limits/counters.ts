import type { Amounts, Attempt, Limits, Settlement, Verdict } from './limits.ts'

/** Where calls are counted: in Redis for all processes, or in the memory of one. */
export type Counters = {
  admit(attempt: Attempt, limits: Limits): Promise<Verdict>
  /** Returns whether the slot was still held. */
  settle(settlement: Settlement): Promise<boolean>
  /** What counts at this moment in the organization, and in those of its projects and keys that are in use. */
  read(organizationId: string): Promise<UsageOfAll>
}

export type UsageOfAll = {
  organization: Amounts
  projects: ReadonlyMap<string, Amounts>
  keys: ReadonlyMap<string, Amounts>
}
