import { vi } from 'vitest'

import type { Log } from '#platform/log.ts'
import { createTestApi } from '#testing/test-api.ts'

import { sendToWebhook, stripeEnvironment, stripeEvent } from './stripe-events.ts'

type Options = NonNullable<Parameters<typeof createTestApi>[0]>

/** The whole API with the Stripe webhook, and one organization. */
export async function createStripeTestApi(options: Options = {}) {
  const problem = vi.fn<Log['problem']>()
  const api = await createTestApi({
    environment: stripeEnvironment,
    change: (house) => ({ ...house, log: { ...house.log, problem } }),
    ...options,
  })
  const { organizationId: id } = api.organization
  return {
    ...api,
    id,
    problem,
    send: (...[event, sending]: [object | string, Parameters<typeof sendToWebhook>[2]?]) =>
      sendToWebhook(api.app, event, sending),
    /** The balance, the sum of payments and the plan. */
    async state(organizationId = id) {
      const row = await api.db
        .selectFrom('organization')
        .innerJoin('credit_account', 'credit_account.organization_id', 'organization.id')
        .select(['posted', 'paid_micro_usd', 'plan'])
        .where('organization.id', '=', organizationId)
        .executeTakeFirstOrThrow()
      return [Number(row.posted), Number(row.paid_micro_usd), row.plan]
    },
    async events() {
      const rows = await api.db
        .selectFrom('payment_event')
        .select(['id', 'state', 'organization_id'])
        .orderBy('id')
        .execute()
      return rows.map((row) => [row.id, row.state, row.organization_id])
    },
  }
}

export const usd = (amount: number) => amount * 1_000_000

export const session = (changes: object) =>
  stripeEvent('checkout.session.completed', {
    id: 'cs_1',
    mode: 'payment',
    payment_status: 'paid',
    currency: 'usd',
    amount_total: 2000,
    customer: 'cus_1',
    payment_intent: 'pi_1',
    invoice: null,
    metadata: {},
    client_reference_id: null,
    ...changes,
  })
/** A second on Stripe's clock, counted from an arbitrary one. */
const at = (second: number) => ({ created: 1_780_315_200 + second })

export const refunded = (cents: number, changes: object = {}, second = 0) =>
  stripeEvent(
    'charge.refunded',
    {
      id: 'ch_1',
      customer: null,
      currency: 'usd',
      amount_refunded: cents,
      metadata: {},
      payment_intent: 'pi_1',
      ...changes,
    },
    at(second),
  )
export const refundFailed = (cents: number, changes: object = {}, second = 0) =>
  stripeEvent('refund.failed', failedRefund(cents, changes), at(second))
export const failedRefund = (cents: number, changes: object = {}) => ({
  id: 're_1',
  object: 'refund',
  charge: 'ch_1',
  payment_intent: 'pi_1',
  currency: 'usd',
  amount: cents,
  status: 'failed',
  failure_reason: 'expired_or_canceled_card',
  ...changes,
})
export const disputed = (verb: 'created' | 'closed', changes: object = {}, second = 0) =>
  stripeEvent(
    `charge.dispute.${verb}`,
    {
      id: 'dp_1',
      object: 'dispute',
      charge: 'ch_1',
      payment_intent: 'pi_1',
      currency: 'usd',
      amount: 2000,
      status: verb === 'created' ? 'needs_response' : 'lost',
      ...changes,
    },
    at(second),
  )
export const invoicePaid = (changes: object = {}) =>
  stripeEvent('invoice.paid', {
    id: 'in_1',
    customer: 'cus_1',
    currency: 'usd',
    amount_paid: 900,
    metadata: {},
    parent: { subscription_details: { metadata: {} } },
    ...changes,
  })
export const subscription = (verb: string, changes: object, created?: number) =>
  stripeEvent(
    `customer.subscription.${verb}`,
    {
      id: 'sub_1',
      customer: 'cus_1',
      status: 'active',
      metadata: {},
      items: { data: [{ price: { id: 'price_developer', product: 'prod_x' } }] },
      ...changes,
    },
    created === undefined ? {} : { created },
  )
export const itemsOf = (id: string, product: string) => ({
  items: { data: [{ price: { id, product } }] },
})
