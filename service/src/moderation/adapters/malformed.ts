import type { z } from 'zod'

import { ScorerFailure } from '#moderation/scorer.ts'

/** The messages say what is wrong with a reply and quote nothing of it, because it may repeat what was scored. */
export const malformed = (what: string) =>
  new ScorerFailure('malformed', `The scorer's reply cannot be used: ${what}.`)

/** Checks the shape of a reply. The message names only the top-level member, because names below it may come from the reply. */
export function readShape<Schema extends z.ZodType>(
  schema: Schema,
  reply: unknown,
): z.output<Schema> {
  const result = schema.safeParse(reply)
  if (result.success) return result.data
  const member = result.error.issues[0]?.path[0]
  throw malformed(
    member === undefined ? 'it has another form' : `it has no usable '${String(member)}'`,
  )
}

/** Converts a probability to basis points. */
export function probabilityToBasisPoints(probability: number): number {
  // A negated comparison would let NaN pass.
  if (!(probability >= 0 && probability <= 1)) throw malformed('a score is not between 0 and 1')
  return Math.round(probability * 10_000)
}
