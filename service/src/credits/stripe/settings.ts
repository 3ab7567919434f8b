import { Plan } from '@gatehouse/contract/limits'
import { z } from 'zod'

const commaList = z.string().transform((text) => text.split(',').map((item) => item.trim()))

/** Whoever knows an empty secret can pay with nothing, so there is none (CVE-2026-41432). */
const rule = 'must be signing secrets of 16 characters or more; leave it out to do without Stripe'
export const StripeSecrets = commaList.pipe(
  z
    .array(z.string().min(16, { error: rule }).max(200, { error: rule }))
    .min(1)
    .max(10),
)

/** Whose events count: those of real money or those of tests, never both. */
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
