import type { Plan } from '@gatehouse/contract/limits'
import type { StripeEventOutcome } from '@gatehouse/contract/webhook'

import type { PaymentDeps } from '#credits/payments/payments.ts'

export type ApplyDeps = PaymentDeps & { plans: ReadonlyMap<string, Plan> }

/** `problem`: a payment that was not counted, or a subscription without a plan. The operator should look. */
export type ApplyResult = { outcome: Exclude<StripeEventOutcome, 'duplicate'>; problem?: string }

export const applied: ApplyResult = { outcome: 'applied' }
