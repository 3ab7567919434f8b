import { Plan } from '@gatehouse/contract/limits'
import { z } from 'zod'

const commaList = z.string().transform((text) => text.split(',').map((item) => item.trim()))

/** With an empty secret anybody could sign events (CVE-2026-41432). */
const rule = 'must be signing secrets of 16 characters or more; unset it to run without Stripe'
export const StripeSecrets = commaList.pipe(
  z
    .array(z.string().min(16, { error: rule }).max(200, { error: rule }))
    .min(1)
    .max(10),
)

/** Which events count: live or test ones, never both. */
export const StripeMode = z.enum(['live', 'test'])
export type StripeMode = z.infer<typeof StripeMode>

/** `price_x=developer,prod_y=growth`: which plan a subscription to a price or a product gives. */
export const StripePlans = z.string().transform((text, context): ReadonlyMap<string, Plan> => {
  const plans = new Map<string, Plan>()
  for (const item of text.split(',').filter((each) => each.trim() !== '')) {
    const [, id = '', name = ''] = /^\s*([\w-]{1,200})\s*=\s*(\w+)\s*$/.exec(item) ?? []
    const plan = Plan.safeParse(name)
    if (!plan.success || plans.has(id)) {
      const message = `must be a list of price=plan, with the plans ${Plan.options.join(', ')}`
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    }
    plans.set(id, plan.data)
  }
  return plans
})
