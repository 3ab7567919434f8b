import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'

import { ApiError } from '#platform/api-error.ts'

// What a new key gets: when it expires, and its budget. What a project prescribes holds for the keys that its members make
// for themselves. A larger wish is refused, not cut: a key that ends earlier than its maker believes is an outage.

type ExpiryRules = {
  /** At most so long; null: as long as is asked for. */
  prescribedSeconds: number | null
  /** For a key of which nothing is said; null: it does not expire. */
  usualSeconds: number | null
}

/** How long a new key works; null: it does not expire. The only place that decides it. */
export function decideLifetime(
  asked: number | null | undefined,
  { prescribedSeconds, usualSeconds }: ExpiryRules,
): number | null {
  const seconds = asked ?? prescribedSeconds ?? usualSeconds
  if (seconds !== null && prescribedSeconds !== null && seconds > prescribedSeconds) {
    throw refuse(
      'expires_in_seconds',
      `is more than the ${prescribedSeconds} seconds that the project prescribes for keys of its members; use at most that, or leave it out`,
    )
  }
  return seconds
}

/** The budget of a new key. A budget that does not stop calls is more than one that does. */
export function decideBudget(
  asked: MonthlyBudget | null | undefined,
  prescribed: MonthlyBudget | null,
): MonthlyBudget | null {
  if (!asked || !prescribed) return asked ?? prescribed
  const isMore = asked.credits > prescribed.credits || (prescribed.hard_stop && !asked.hard_stop)
  if (!isMore) return asked
  const kind = prescribed.hard_stop ? ' with hard_stop' : ''
  throw refuse(
    'monthly_budget',
    `is more than the ${prescribed.credits} credits${kind} that the project prescribes for keys of its members; use at most that, or leave it out`,
  )
}

const refuse = (name: string, rule: string) =>
  new ApiError('invalid_parameter', `'body.${name}' ${rule}.`, { param: `body.${name}` })
