import type { Plan } from '@gatehouse/contract/limits'
import type { StripeEventOutcome } from '@gatehouse/contract/webhook'

import type { PostTools } from '#credits/payments.ts'

export type ApplyTools = PostTools & { plans: ReadonlyMap<string, Plan> }

/** `problem`: money that could not be counted, or a plan that nobody gives; somebody should look. */
export type Applied = { outcome: Exclude<StripeEventOutcome, 'duplicate'>; problem?: string }

export const done: Applied = { outcome: 'applied' }
