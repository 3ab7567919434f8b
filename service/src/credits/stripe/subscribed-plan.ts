import type { Plan } from '@gatehouse/contract/limits'

import { highestPlan } from '#access/organizations/tier.ts'

/** The highest plan that any of the prices gives; `free` if none gives one. */
export const findSubscribedPlan = (
  prices: readonly string[],
  plans: ReadonlyMap<string, Plan>,
): Plan => highestPlan(prices.flatMap((price) => plans.get(price) ?? []))
