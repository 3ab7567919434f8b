import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { operator } from '#audit/event.ts'
import { recordPayment } from '#credits/payments/payments.ts'
import { reconcile } from '#credits/reconcile/reconcile.ts'
import {
  addProcess,
  sendToWebhook,
  stripeEnvironment,
  type StripeEvent,
  stripeEvent,
} from '#testing/stripe/stripe-events.ts'
import { createTestApi } from '#testing/test-api.ts'

// All events of a customer, delivered in any order and any number of times to two processes at once, end in
// the same state. STRIPE_RUNS sets how many orders, STRIPE_SEED repeats a run.

const runs = sizeOf({ usual: 25, long: 250, variable: 'STRIPE_RUNS' })
const seed = Number(process.env['STRIPE_SEED'] ?? Date.now() % 2 ** 31)

type Amounts = {
  bought: number
  tax: number
  /** The sums that were refunded, and one refund that failed in the end. */
  refunds: number[]
  failed: number
  disputed: number
  isWon: boolean
  invoiced: number
  invoiceRefund: number
  /** Paid with a client reference that the payer has written. */
  stray: number
  /** Recorded by the operator before Stripe sends anything. */
  byHand: number
}

const handPaid = (run: number) => `pi_hand_${run}`

/** The ids differ in every run: all runs share a database. */
function buildEvents(run: number, organizationId: string, amounts: Amounts): StripeEvent[] {
  const { bought, tax, refunds, invoiced, invoiceRefund, stray, byHand } = amounts
  const name = (id: string) => `${id}_${run}`
  const usd = { currency: 'usd', metadata: {} }
  const buy = {
    ...usd,
    id: name('cs_1'),
    mode: 'payment',
    payment_status: 'paid',
    amount_total: bought,
    total_details: { amount_tax: tax, amount_shipping: 0 },
    payment_intent: name('pi_1'),
    customer: name('cus_1'),
    metadata: { organization_id: organizationId },
  }
  const subscribe = {
    ...usd,
    id: name('cs_2'),
    mode: 'subscription',
    payment_status: 'paid',
    amount_total: invoiced,
    invoice: name('in_1'),
    customer: name('cus_2'),
    client_reference_id: organizationId,
  }
  const invoice = {
    ...usd,
    id: name('in_1'),
    customer: name('cus_2'),
    amount_paid: invoiced,
    parent: { subscription_details: { metadata: {} } },
  }
  const charge = (id: string, paymentIntent: string, cents: number) => ({
    ...usd,
    id: name(id),
    customer: null,
    payment_intent: name(paymentIntent),
    amount_refunded: cents,
  })
  const plan = (id: string, status: string, price: string) => ({
    id: name(id),
    customer: name('cus_2'),
    status,
    metadata: {},
    items: { data: [{ price: { id: price, product: 'prod_x' } }] },
  })
  return [
    stripeEvent('checkout.session.completed', { ...buy, payment_status: 'unpaid' }),
    stripeEvent('checkout.session.async_payment_succeeded', buy),
    stripeEvent('checkout.session.completed', buy),
    ...refunds.map((cents) => stripeEvent('charge.refunded', charge('ch_1', 'pi_1', cents))),
    ...buildReports(name, amounts),
    stripeEvent('checkout.session.completed', subscribe),
    stripeEvent('invoice.paid', invoice, { created: 1 }),
    stripeEvent('invoice.paid', { ...invoice, id: name('in_2'), currency: 'eur' }),
    stripeEvent('invoice_payment.paid', {
      invoice: name('in_1'),
      payment: { payment_intent: name('pi_2') },
    }),
    stripeEvent('charge.refunded', charge('ch_2', 'pi_2', invoiceRefund)),
    ...(
      [
        ['created', plan('sub_1', 'incomplete', 'price_scale'), 10],
        ['updated', plan('sub_1', 'active', 'price_scale'), 10],
        ['updated', plan('sub_1', 'active', 'price_developer'), 20],
        ['created', plan('sub_2', 'active', 'price_scale'), 30],
        ['deleted', plan('sub_2', 'canceled', 'price_scale'), 40],
        ['updated', plan('sub_2', 'active', 'price_scale'), 50],
        ['created', plan('sub_3', 'active', 'price_scale'), 60],
        ['updated', plan('sub_3', 'active', 'price_developer'), 60],
      ] as const
    ).map(([verb, object, created]) =>
      stripeEvent(`customer.subscription.${verb}`, object, { created }),
    ),
    stripeEvent('customer.updated', { id: name('cus_1') }),
    stripeEvent('checkout.session.completed', {
      ...buy,
      total_details: null,
      metadata: {},
      client_reference_id: 'cart_7',
      amount_total: stray,
      payment_intent: name('pi_stray'),
    }),
    stripeEvent('charge.refunded', {
      ...charge('ch_hand', '', 100),
      payment_intent: handPaid(run),
    }),
    stripeEvent('checkout.session.completed', {
      ...buy,
      total_details: null,
      amount_total: byHand,
      payment_intent: handPaid(run),
    }),
  ]
}

/** What the payer of `pi_1` and the one of `pi_2` try to take back. */
function buildReports(name: (id: string) => string, amounts: Amounts): StripeEvent[] {
  const { failed, disputed, isWon } = amounts
  const usd = { currency: 'usd' }
  const ofFirst = { ...usd, charge: name('ch_1'), payment_intent: name('pi_1') }
  const ofSecond = { ...usd, charge: name('ch_2'), payment_intent: name('pi_2') }
  const refund = { ...ofFirst, id: name('re_1'), amount: failed, status: 'failed' }
  const first = { ...ofFirst, id: name('dp_1'), amount: disputed, status: 'needs_response' }
  const second = { ...ofSecond, id: name('dp_2'), amount: 900, status: 'warning_needs_response' }
  const later = { created: 1_780_315_300 }
  return [
    stripeEvent('refund.failed', refund, later),
    stripeEvent('charge.refund.updated', refund, later),
    stripeEvent('charge.dispute.created', first),
    stripeEvent('charge.dispute.closed', { ...first, status: isWon ? 'won' : 'lost' }, later),
    stripeEvent('charge.dispute.created', second),
    stripeEvent('charge.dispute.closed', { ...second, status: 'warning_closed' }, later),
  ]
}

/** What is left of the credits of `pi_1`, in micro-USD. */
function computeLeft({ bought, tax, refunds, failed, disputed, isWon }: Amounts): number {
  const refunded = Math.max(0, Math.max(...refunds) - failed)
  const takenBack = Math.min(bought, refunded + (isWon ? 0 : disputed))
  const credited = (bought - tax) * 10_000
  return credited - Number((BigInt(credited) * BigInt(takenBack)) / BigInt(bought))
}

const eventCount = 29
const cents = fc.integer({ min: 1000, max: 99_999 })
const arbitrary = fc.record({
  bought: cents,
  tax: fc.nat(900),
  refunds: fc.tuple(fc.nat(1000), fc.nat(1000), fc.nat(1000)),
  failed: fc.integer({ min: 1, max: 1000 }),
  disputed: fc.integer({ min: 1, max: 120_000 }),
  isWon: fc.boolean(),
  invoiced: cents,
  invoiceRefund: fc.integer({ min: 1, max: 1000 }),
  stray: cents,
  byHand: cents,
  /** Each event once at least, some more often, in any order. */
  order: fc
    .array(fc.nat(eventCount - 1), { maxLength: 12 })
    .map((twice) => [...Array.from({ length: eventCount }, (_, index) => index), ...twice])
    .chain((all) => fc.shuffledSubarray(all, { minLength: all.length })),
  atOnce: fc.integer({ min: 1, max: 8 }),
})

test(
  'events in any order, repeated and delivered at once, end in the same state',
  { timeout: 120_000 },
  async () => {
    const { app, house, db } = await createTestApi({ environment: stripeEnvironment })
    const apps = [app, await addProcess(house)]
    let run = 0

    async function stateOf(organizationId: string) {
      const row = await db
        .selectFrom('organization')
        .innerJoin('credit_account', 'credit_account.organization_id', 'organization.id')
        .select(['posted', 'paid_micro_usd', 'plan'])
        .where('organization.id', '=', organizationId)
        .executeTakeFirstOrThrow()
      return { posted: Number(row.posted), paid: Number(row.paid_micro_usd), plan: row.plan }
    }

    const property = fc.asyncProperty(arbitrary, async ({ order, atOnce, ...amounts }) => {
      const { organizationId } = await createOrganization('Anybody', house)
      const paid = { id: handPaid(++run), amount: BigInt(amounts.byHand * 10_000) }
      await recordPayment(organizationId, paid, { ...house, by: operator })
      const events = buildEvents(run, organizationId, amounts)
      expect(events).toHaveLength(eventCount)
      for (let start = 0; start < order.length; start += atOnce) {
        const answers = await Promise.all(
          order
            .slice(start, start + atOnce)
            .map((index, place) => sendToWebhook(apps[place % 2]!, events[index]!)),
        )
        expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
      }
      const { invoiced, invoiceRefund, stray, byHand } = amounts
      const others = invoiced - invoiceRefund + stray + byHand - 100
      const left = computeLeft(amounts) + others * 10_000
      const expected = { posted: left, paid: left, plan: 'developer' }
      expect(await stateOf(organizationId)).toEqual(expected)
      const waiting = await db
        .selectFrom('payment_event')
        .select('id')
        .where('state', '=', 'waiting')
        .execute()
      expect(waiting).toEqual([])
      const again = await Promise.all(events.map((event) => sendToWebhook(app, event)))
      expect(new Set(again.map(({ outcome }) => outcome))).toEqual(new Set(['duplicate']))
      expect(await stateOf(organizationId)).toEqual(expected)
    })
    await fc.assert(property, { numRuns: runs, seed, endOnFailure: true })
    expect((await reconcile(db)).differences).toEqual([])
  },
)
