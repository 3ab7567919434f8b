import type { Event } from '#audit/event.ts'

import type { HoldMeta, UsageMeta } from './usage-meta.ts'

/** A call to a model: its request id, which is unique within the organization. */
export type CallRef = { organizationId: string; id: string }

/** A call as a map key. */
export const callKey = ({ organizationId, id }: CallRef) => `${organizationId} ${id}`

/** The most that a call may cost, held before the call is sent upstream. Repeating a hold changes nothing. */
export type Hold = CallRef & {
  amount: bigint
  /** From now, by the database's clock. */
  expiresInMs: number
  meta: HoldMeta
}

/** Where it is not held: what new calls could use, and what calls under way hold. */
export type HoldResult = { isHeld: true } | { isHeld: false; available: bigint; held: bigint }

/** What a call has cost. Repeating a settlement charges nothing more. */
export type Settlement = CallRef & {
  amount: bigint
  meta: UsageMeta
  /** The audit event of the call; it commits with the charge. */
  event: Event
  /** The call was made with BILLING=off: there is no hold, and its cost is counted but not charged. */
  isOnlyRecorded?: true
}

/** A caller waits this long for its receipt. Results that arrive later are discarded. */
export const settleMaxMs = 2000

/**
 * `charged` is less than the settlement's amount where the hold, or the balance of a late settlement, was smaller.
 * `posted` is the balance after it: what was paid and granted, less what was used. Other calls may hold a part of it.
 */
export type SettleResult = { charged: bigint; posted: bigint }

/** How calls are paid (docs/billing.md). */
export const billingModes = ['prepaid', 'metered', 'off'] as const
export type Billing = (typeof billingModes)[number]

/** What a call's receipt says. `posted` is null where there is no balance that calls are paid from. */
export type Charged = { charged: bigint; posted: bigint | null }

/** Where calls are held and settled: the queue of holds, or what stands in for it with BILLING=off. */
export type CallQueue = {
  reserve(hold: Hold): Promise<HoldResult>
  settle(settlement: Settlement): Promise<Charged>
}
