import type { Json, Receipt } from '#inference/answer.ts'

/** The members that tell a caller what its call has cost (contract 4.10). */
export const creditMembers = (receipt: Receipt): Json => ({
  remaining_credits: receipt.remainingCredits,
  estimated_credits_used: receipt.creditsUsed,
  estimated_cost_usd: receipt.costUsd,
})
