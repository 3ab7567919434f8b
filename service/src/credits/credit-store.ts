import type { Event } from '#audit/event.ts'

import type { HoldMeta, UsageMeta } from './usage-meta.ts'

/** What a call may cost at worst. `id` is the request's: holding it twice holds it once. */
export type Hold = {
  organizationId: string
  id: string
  amount: bigint
  /** From now on, by the database's clock. */
  expiresInMs: number
  meta: HoldMeta
}

export type Reserved = { isHeld: true } | { isHeld: false; available: bigint }

/** What a call has cost. Settling it twice charges it once. */
export type Settlement = {
  organizationId: string
  id: string
  amount: bigint
  meta: UsageMeta
  /** What is told about the call; it commits with the charge. */
  event: Event
}

/** `charged` may be less than what was asked for: the balance never goes below zero. */
export type Settled = { charged: bigint; available: bigint }

/** Where balances are kept. PostgreSQL is the only one there is; nothing above depends on it. */
export type CreditStore = {
  reserve(hold: Hold): Promise<Reserved>
  settle(settlement: Settlement): Promise<Settled>
}
