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

export type HoldResult = { isHeld: true } | { isHeld: false; available: bigint }

/** What a call has cost. Repeating a settlement charges nothing more. */
export type Settlement = CallRef & {
  amount: bigint
  meta: UsageMeta
  /** The audit event of the call; it commits with the charge. */
  event: Event
}

/** A caller waits this long for its receipt. Results that arrive later are discarded. */
export const settleMaxMs = 2000

/** `charged` is less than the settlement's amount where the balance would go below zero. */
export type SettleResult = { charged: bigint; available: bigint }
