import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { setPlan } from '#access/organizations/tier.ts'
import type { House } from '#assemble.ts'
import { addProcess, sendToWebhook } from '#testing/stripe/stripe-events.ts'
import {
  createStripeTestApi,
  itemsOf,
  session,
  subscription,
} from '#testing/stripe/stripe-test-api.ts'

// The plan in force is the higher of what the operator gives and what subscriptions give.

/** The Stripe test API, with a reader of the plans: in force, the operator's, the subscriptions'. */
async function createPlanApi() {
  const api = await createStripeTestApi()
  const { db, id, house } = api
  return {
    ...api,
    own: { metadata: { organization_id: id } },
    give: (plan: Parameters<typeof setPlan>[1]) => setPlan(id, plan, house),
    async plans() {
      const row = await db
        .selectFrom('organization')
        .select(['plan', 'operator_plan', 'subscribed_plan'])
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
      return [row.plan, row.operator_plan, row.subscribed_plan]
    },
    /** How many times processes were notified that the organization has changed. */
    async notifications() {
      const { rows } = await sql`select from config_change where kind = 'organization'`.execute(db)
      return rows.length
    },
  }
}

/** The same service, started anew with other plans. */
const restarted = (house: House, plans: House['config']['STRIPE_PLANS']) =>
  addProcess({ ...house, config: { ...house.config, STRIPE_PLANS: plans } })

test('neither takes away what the other gives, and processes are notified only if the plan in force changes', async () => {
  const { send, own, give, plans, notifications } = await createPlanApi()
  await send(subscription('created', own, 100))
  expect([await plans(), await notifications()]).toEqual([['developer', 'free', 'developer'], 1])
  await give('growth')
  expect([await plans(), await notifications()]).toEqual([['growth', 'growth', 'developer'], 2])
  await send(subscription('updated', { ...own, ...itemsOf('price_scale', 'x') }, 110))
  expect([await plans(), await notifications()]).toEqual([['scale', 'growth', 'scale'], 3])
  await give('developer')
  expect([await plans(), await notifications()]).toEqual([['scale', 'developer', 'scale'], 3])
  await send(subscription('deleted', { ...own, ...itemsOf('price_scale', 'x') }, 120))
  expect([await plans(), await notifications()]).toEqual([['developer', 'developer', 'free'], 4])
  await give('developer')
  await give('free')
  expect([await plans(), await notifications()]).toEqual([['free', 'free', 'free'], 5])
})

test('a subscription whose price has left the list falls back when it ends', async () => {
  const { send, own, plans, house } = await createPlanApi()
  await send(subscription('created', own, 100))
  expect(await plans()).toEqual(['developer', 'free', 'developer'])
  const later = await restarted(house, new Map())
  const end = subscription('deleted', own, 110)
  expect(await sendToWebhook(later, end)).toMatchObject({ outcome: 'applied' })
  expect(await plans()).toEqual(['free', 'free', 'free'])
})

test('a price that is added to the list later counts with the next event, and was a problem before', async () => {
  const { send, own, give, plans, house, problem } = await createPlanApi()
  const sold = { ...own, ...itemsOf('price_new', 'prod_new') }
  await give('developer')
  expect(await send(subscription('created', sold, 100))).toMatchObject({ outcome: 'applied' })
  expect(await plans()).toEqual(['developer', 'developer', 'free'])
  expect(String(problem.mock.calls[0]?.[1])).toContain(
    'STRIPE_PLANS lists no price of sub_1: price_new, prod_new',
  )
  const later = await restarted(house, new Map([['price_new', 'growth']]))
  // Even an old event of another subscription: the plan is found anew from all subscriptions.
  await sendToWebhook(later, subscription('created', { ...own, id: 'sub_2', status: 'unpaid' }, 1))
  expect(await plans()).toEqual(['growth', 'developer', 'growth'])
})

test('a price that is retired is a problem, and takes nothing that the operator gave', async () => {
  const { send, own, give, plans, problem } = await createPlanApi()
  await give('scale')
  await send(subscription('created', own, 100))
  expect(problem).not.toHaveBeenCalled()
  await send(subscription('updated', { ...own, ...itemsOf('price_gone', 'prod_gone') }, 110))
  expect(await plans()).toEqual(['scale', 'scale', 'free'])
  expect(problem).toHaveBeenCalledTimes(1)
})

test.each(['operator', 'subscription'])(
  'the trial of a stranger who names the organization lowers nothing that its %s gives',
  async (giver) => {
    const { send, id, own, give, plans } = await createPlanApi()
    if (giver === 'operator') await give('scale')
    else await send(subscription('created', { ...own, ...itemsOf('price_scale', 'x') }, 90))
    const start = { mode: 'subscription', invoice: null, amount_total: 0, payment_intent: null }
    await send(session({ ...start, customer: 'cus_stranger', client_reference_id: id }))
    const trial = { id: 'sub_stranger', customer: 'cus_stranger', status: 'trialing' }
    for (const [verb, changes, at] of [
      ['created', trial, 100],
      ['updated', { ...trial, ...itemsOf('price_unknown', 'x') }, 110],
      ['updated', { ...trial, status: 'unpaid' }, 120],
      ['deleted', trial, 130],
    ] as const) {
      expect(await send(subscription(verb, changes, at))).toMatchObject({ outcome: 'applied' })
      expect((await plans())[0]).toBe('scale')
    }
  },
)
