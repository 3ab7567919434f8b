import type { Hold, Settlement } from '#credits/settlement.ts'

/** What can be done with the credits of a call. */
export type CreditMove =
  | {
      readonly kind: 'settle'
      readonly organizationId: string
      readonly id: string
      readonly call: Settlement
    }
  | {
      readonly kind: 'release' | 'hold'
      readonly organizationId: string
      readonly id: string
      readonly call: Hold
    }

/**
 * `amount` and `rest` of a settlement are the charge and the balance after it; of a hold, what new calls could
 * use and what calls under way hold.
 */
export type Moved = {
  outcome: 'settled' | 'released' | 'held' | 'refused' | 'other_amount' | 'no_account'
  amount: bigint
  rest: bigint
}
