import type { Json, Receipt } from './answer.ts'

/** The receipt as members of an answer. */
export const creditMembers = ({ remainingCredits, creditsUsed, costUsd }: Receipt): Json => ({
  remaining_credits: remainingCredits,
  estimated_credits_used: creditsUsed,
  estimated_cost_usd: costUsd,
})
