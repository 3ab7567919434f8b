import type { OwnLimits } from '@gatehouse/contract/limits'
import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'

import { writeNumber, writeUsd } from '#parts/money.ts'

/** What projects and keys have in common. */
export type Limited = {
  limits: OwnLimits
  monthly_budget: MonthlyBudget | null
  allowed_models: string[] | null
}

export type LimitName = keyof NonNullable<OwnLimits>

export const limitLabels: Readonly<Record<LimitName, string>> = {
  requests_per_minute: 'Requests per minute',
  requests_per_day: 'Requests per day',
  tokens_per_minute: 'Tokens per minute',
  concurrent_requests: 'Requests at once',
}

export const limitNames: readonly LimitName[] = [
  'requests_per_minute',
  'requests_per_day',
  'tokens_per_minute',
  'concurrent_requests',
]

const shortLabels: Readonly<Record<LimitName, string>> = {
  requests_per_minute: 'requests/min',
  requests_per_day: 'requests/day',
  tokens_per_minute: 'tokens/min',
  concurrent_requests: 'at once',
}

export const describeBudget = ({ credits, hard_stop: isHard }: MonthlyBudget): string =>
  `${writeUsd(credits)} a month${isHard ? '' : ', alerts only'}`

const describeModels = (models: readonly string[]): string =>
  models.length === 1 ? '1 model' : `${writeNumber(models.length)} models`

/** What was set, in a few words each. */
export function describeLimits({
  limits,
  monthly_budget: budget,
  allowed_models: models,
}: Limited) {
  const set = limitNames.flatMap((name) => {
    const value = limits?.[name] ?? null
    return value === null ? [] : [`${writeNumber(value)} ${shortLabels[name]}`]
  })
  if (budget) set.push(describeBudget(budget))
  if (models) set.push(describeModels(models))
  return set
}
