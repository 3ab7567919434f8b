import { parseExact } from '#platform/exact-json.ts'

import type { Json, Receipt, SourceFrame } from './answer.ts'
import { BrokenAnswer } from './broken-answer.ts'
import { objectOf } from './json-values.ts'

/** The receipt as members of an answer. */
export const creditMembers = ({ remainingCredits, creditsUsed, costUsd }: Receipt): Json => ({
  remaining_credits: remainingCredits,
  estimated_credits_used: creditsUsed,
  estimated_cost_usd: costUsd,
})

type Change = (answer: Json) => Json

export const replaceUsage = (usage: Json | null): Change | null =>
  usage && ((answer) => ({ ...answer, usage }))

/**
 * The text of a plain answer with the receipt as its last members. Everything before them stays as the upstream
 * wrote it, unless a member must be replaced: by `change`, or because it is a receipt of another Gatehouse.
 */
export function spliceReceipt(
  { data, json }: SourceFrame,
  receipt: Receipt,
  change: Change | null,
): string {
  const members = creditMembers(receipt)
  const isReplaced =
    change !== null || Object.keys(members).some((name) => Object.hasOwn(json, name))
  if (!isReplaced)
    return `${data.slice(0, data.lastIndexOf('}'))},${JSON.stringify(members).slice(1)}`
  const answer = parseAnswer(data)
  return JSON.stringify({ ...(change?.(answer) ?? answer), ...members })
}

/** Parses an answer so that its numbers can be written as they were. */
export function parseAnswer(text: string): Json {
  try {
    return objectOf(parseExact(text))
  } catch (error) {
    throw new BrokenAnswer('The answer cannot be read without changing its numbers.', {
      cause: error,
    })
  }
}
