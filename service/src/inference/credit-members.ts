import type { Json, Receipt } from './answer.ts'

/** The members that tell a caller what its call has cost (contract 4.10). */
export const creditMembers = ({ remainingCredits, creditsUsed, costUsd }: Receipt): Json => ({
  remaining_credits: remainingCredits,
  estimated_credits_used: creditsUsed,
  estimated_cost_usd: costUsd,
})
