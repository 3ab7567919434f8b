import { expect, test } from 'vitest'

import { StripePlans } from './settings.ts'
import { findSubscribedPlan } from './subscribed-plan.ts'

const plans = StripePlans.parse('price_d=developer, prod_g=growth,price_s=scale')

test.each([
  [[], 'free'],
  [['price_other'], 'free'],
  [['price_d'], 'developer'],
  [['prod_g', 'price_d'], 'growth'],
  [['price_d', 'price_s', 'prod_g'], 'scale'],
] as const)('prices %j give the plan %s', (prices, plan) => {
  expect(findSubscribedPlan(prices, plans)).toBe(plan)
})

test.each(['price_d', 'price_d=', 'price_d=gold', '=growth', 'a=growth,a=scale', 'a b=growth'])(
  'the list %j is refused',
  (text) => {
    expect(StripePlans.safeParse(text).success).toBe(false)
  },
)
