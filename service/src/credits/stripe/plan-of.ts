import { Plan } from '@gatehouse/contract/limits'

/** The highest plan that any of the prices gives; free where none gives one. */
export function planOf(prices: readonly string[], plans: ReadonlyMap<string, Plan>): Plan {
  const given = new Set(prices.map((price) => plans.get(price)))
  return Plan.options.findLast((plan) => given.has(plan)) ?? 'free'
}
