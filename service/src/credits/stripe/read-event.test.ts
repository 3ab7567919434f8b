import { expect, test } from 'vitest'

import { ApiError } from '#platform/api-error.ts'

import { type Effect, readEvent } from './read-event.ts'

const read = (type: string, object: object, changes: object = {}) => {
  const event = { id: 'evt_1', object: 'event', type, created: 1_780_315_200, livemode: true }
  return readEvent({ ...event, data: { object }, ...changes }, 'live')
}
const effectOf = (type: string, object: object) => read(type, object).effect

const inMetadata = (organizationId: string | null) => ({ in: 'metadata', organizationId })
const byReference = { in: 'client_reference_id', organizationId: 'org_1' }

const session = {
  id: 'cs_1',
  object: 'checkout.session',
  mode: 'payment',
  payment_status: 'paid',
  currency: 'usd',
  amount_total: 2050,
  customer: 'cus_1',
  client_reference_id: 'org_1',
  payment_intent: 'pi_1',
  invoice: null,
  invoice_creation: { enabled: false },
  metadata: {},
}

test('a paid session is a payment by its payment intent, to the cent', () => {
  expect(read('checkout.session.completed', session)).toEqual({
    id: 'evt_1',
    type: 'checkout.session.completed',
    customer: 'cus_1',
    createdAt: new Date('2026-06-01T12:00:00Z'),
    namedOrganization: byReference,
    effect: {
      kind: 'payment',
      reference: 'pi_1',
      microUsd: 20_500_000,
      chargedMicroUsd: 20_500_000,
      links: [],
    },
  })
})

test('tax and shipping of a session buy no credits', () => {
  const taxed = { ...session, total_details: { amount_tax: 350, amount_shipping: 200 } }
  expect(effectOf('checkout.session.completed', taxed)).toMatchObject({
    microUsd: 15_000_000,
    chargedMicroUsd: 20_500_000,
  })
  const nothingElse = { ...session, total_details: { amount_tax: 2050 } }
  expect(effectOf('checkout.session.completed', nothingElse)).toEqual({
    kind: 'nothing',
    why: 'it is all tax or shipping',
  })
})

test('metadata, which the seller writes, takes precedence over the reference, which a payer may write', () => {
  const metadata = { organization_id: 'org_2' }
  const event = read('checkout.session.completed', { ...session, metadata })
  expect(event.namedOrganization).toEqual(inMetadata('org_2'))
})

test.each([7, null, '', 'org 1', 'org_\u0000', 'ö', 'o'.repeat(181), {}, ['org_1']])(
  'metadata that names %j as the organization names no organization, and hides the reference',
  (organization_id) => {
    const event = read('checkout.session.completed', { ...session, metadata: { organization_id } })
    expect(event.namedOrganization).toEqual(inMetadata(null))
  },
)

test.each([null, undefined, [], 'x', { other: 1 }, JSON.parse('{"__proto__":{"constructor":1}}')])(
  'metadata %j without an organization leaves it to the reference',
  (metadata) => {
    const event = read('checkout.session.completed', { ...session, metadata })
    expect(event.namedOrganization).toEqual(byReference)
  },
)

test.each([null, undefined, '', 'a shopping cart', 'x\u0000', 7, 'x'.repeat(181)])(
  'the reference %j names no organization: a payer may write anything there',
  (client_reference_id) => {
    const event = read('checkout.session.completed', { ...session, client_reference_id })
    expect(event.namedOrganization).toBeNull()
  },
)

test('what was expanded stands for its id', () => {
  const expanded = { ...session, customer: { id: 'cus_9' }, payment_intent: { id: 'pi_9', x: 1 } }
  expect(read('checkout.session.completed', expanded)).toMatchObject({
    customer: 'cus_9',
    effect: { reference: 'pi_9' },
  })
})

test.each([
  ['a subscription', { mode: 'subscription', invoice: 'in_1' }, 'invoice'],
  ['a session with an invoice', { invoice: 'in_1' }, 'invoice'],
  ['a session that will have an invoice', { invoice_creation: { enabled: true } }, 'invoice'],
  ['a set-up', { mode: 'setup', amount_total: null, currency: null }, 'no payment'],
  ['a bank debit under way', { payment_status: 'unpaid' }, 'not paid'],
  ['a free session', { payment_status: 'paid', amount_total: 0 }, 'zero'],
])('%s is no payment, and still says whose customer it is', (_, change, why) => {
  const event = read('checkout.session.completed', { ...session, ...change })
  expect(event).toMatchObject({ customer: 'cus_1', namedOrganization: byReference })
  expect(event.effect).toEqual({ kind: 'nothing', why: expect.stringContaining(why) as string })
})

test('another currency is a problem, not a payment', () => {
  const effect = effectOf('checkout.session.completed', { ...session, currency: 'eur' })
  expect(effect).toEqual({
    kind: 'nothing',
    isProblem: true,
    why: 'the currency is eur, not usd',
  })
})

const invoice = { id: 'in_1', customer: 'cus_1', currency: 'usd', amount_paid: 900, metadata: {} }
const named = { subscription_details: { metadata: { organization_id: 'org_1' } } }
const link = { paymentIntent: 'pi_1', invoice: 'in_1' }
const payments = { data: [{ payment: { type: 'payment_intent', payment_intent: 'pi_1' } }] }

test.each([
  ['before 2025-03-31', { ...named, payment_intent: 'pi_1' }, [link], inMetadata('org_1')],
  ['since 2025-03-31', { parent: named }, [], inMetadata('org_1')],
  ['since 2025-03-31, expanded', { parent: named, payments }, [link], inMetadata('org_1')],
  [
    'of no subscription',
    { parent: null, metadata: { organization_id: 'org_3' } },
    [],
    inMetadata('org_3'),
  ],
  ['that names no organization', { parent: { subscription_details: null } }, [], null],
])('an invoice %s is a payment by its own id', (_, change, links, expected) => {
  expect(read('invoice.paid', { ...invoice, ...change })).toMatchObject({
    customer: 'cus_1',
    namedOrganization: expected,
    effect: { kind: 'payment', reference: 'in_1', microUsd: 9_000_000, links },
  })
})

test('the tax of an invoice buys no credits', () => {
  const taxed = { ...invoice, total: 900, total_excluding_tax: 750 }
  expect(effectOf('invoice.paid', taxed)).toMatchObject({
    microUsd: 7_500_000,
    chargedMicroUsd: 9_000_000,
  })
})

test('a paid part of an invoice links it to its payment intent', () => {
  const object = { invoice: 'in_1', payment: { type: 'payment_intent', payment_intent: 'pi_1' } }
  expect(effectOf('invoice_payment.paid', object)).toEqual({ kind: 'link', links: [link] })
  const record = { invoice: 'in_1', payment: { type: 'payment_record' } }
  expect(effectOf('invoice_payment.paid', record)).toMatchObject({ kind: 'nothing' })
})

test.each([
  ['before 2025-03-31', { invoice: 'in_1' }, 'in_1'],
  ['since 2025-03-31', {}, null],
])('a refund %s has the sum of what was refunded', (_, change, ofInvoice) => {
  const charge = { id: 'ch_1', customer: null, currency: 'usd', amount_refunded: 250, metadata: [] }
  const effect = effectOf('charge.refunded', { ...charge, payment_intent: 'pi_1', ...change })
  expect(effect).toEqual({
    kind: 'refund',
    charge: 'ch_1',
    paymentIntent: 'pi_1',
    invoice: ofInvoice,
    microUsd: 2_500_000,
  })
})

const refund = { id: 're_1', charge: 'ch_1', payment_intent: 'pi_1', currency: 'usd', amount: 250 }

test.each(['refund.failed', 'refund.updated', 'charge.refund.updated'])(
  'a %s matters if the refund has failed or was canceled',
  (type) => {
    for (const status of ['failed', 'canceled']) {
      expect(effectOf(type, { ...refund, status })).toEqual({
        kind: 'failed_refund',
        refund: 're_1',
        charge: 'ch_1',
        paymentIntent: 'pi_1',
        invoice: null,
        microUsd: 2_500_000,
      })
    }
    for (const status of ['pending', 'requires_action', 'succeeded', null]) {
      expect(effectOf(type, { ...refund, status, currency: 'eur' })).toEqual({
        kind: 'nothing',
        why: 'the refund has not failed',
      })
    }
  },
)

test.each([
  ['created', 'needs_response', false, false],
  ['created', 'warning_needs_response', false, false],
  ['closed', 'lost', true, false],
  ['closed', 'won', true, true],
  ['closed', 'warning_closed', true, true],
  ['closed', 'prevented', true, false],
  ['closed', 'a status that is new', true, false],
])('a dispute that was %s and is %s', (verb, status, isEnded, isWon) => {
  const dispute = { ...refund, id: 'dp_1', status, charge: { id: 'ch_1' } }
  expect(effectOf(`charge.dispute.${verb}`, dispute)).toEqual({
    kind: 'dispute',
    dispute: 'dp_1',
    charge: 'ch_1',
    paymentIntent: 'pi_1',
    invoice: null,
    microUsd: 2_500_000,
    isEnded,
    isWon,
  })
})

test.each([
  ['refund.failed', { charge: null }, 'it names no charge'],
  ['charge.dispute.created', { charge: null }, 'it names no charge'],
  ['refund.failed', { currency: 'eur' }, 'the currency is eur, not usd'],
  ['charge.dispute.created', { currency: 'eur' }, 'the currency is eur, not usd'],
])('a %s with %j is a problem', (type, change, why) => {
  const effect = effectOf(type, { ...refund, status: 'failed', ...change })
  expect(effect).toEqual({ kind: 'nothing', isProblem: true, why })
})

const subscription = {
  id: 'sub_1',
  customer: 'cus_1',
  status: 'active',
  metadata: { organization_id: 'org_1' },
  items: { data: [{ price: { id: 'price_1', product: 'prod_1' }, plan: { id: 'price_1' } }] },
}

test.each([
  ['created', 'active', true, false],
  ['updated', 'trialing', true, false],
  ['updated', 'past_due', true, false],
  ['updated', 'unpaid', false, false],
  ['updated', 'incomplete', false, false],
  ['updated', 'paused', false, false],
  ['updated', 'canceled', false, false],
  ['deleted', 'active', false, true],
] as const)('a subscription that was %s and is %s', (verb, status, isActive, isEnded) => {
  const effect = effectOf(`customer.subscription.${verb}`, { ...subscription, status })
  expect(effect).toMatchObject({
    kind: 'subscription',
    subscription: 'sub_1',
    prices: ['price_1', 'prod_1'],
    isActive,
    isEnded,
  })
})

test('of two reports of the same second, an update is later than the creation', () => {
  const tie = (verb: string) => {
    const effect = effectOf(`customer.subscription.${verb}`, subscription)
    return (effect as Extract<Effect, { kind: 'subscription' }>).tie
  }
  expect(tie('created') < tie('updated')).toBe(true)
})

test('an event of another type is nothing, whatever it holds', () => {
  const event = { id: 'evt_2', type: 'plan.created', created: 1, livemode: true }
  expect(readEvent(event, 'live')).toMatchObject({
    customer: null,
    namedOrganization: null,
    effect: { kind: 'nothing' },
  })
})

test.each([
  ['of the test mode', { livemode: false }, 'not in live mode'],
  ['of a connected account', { account: 'acct_1' }, 'belongs to a connected account'],
])('an event %s is a problem, and nothing in it is read', (_, change, why) => {
  for (const object of [session, {}]) {
    expect(read('checkout.session.completed', object, change)).toMatchObject({
      customer: null,
      namedOrganization: null,
      effect: { kind: 'nothing', isProblem: true, why: expect.stringContaining(why) as string },
    })
  }
})

test('in test mode, test events count and others do not', () => {
  const event = { id: 'evt_3', type: 'invoice.paid', created: 1, data: { object: invoice } }
  const kindOf = (livemode: boolean) => readEvent({ ...event, livemode }, 'test').effect.kind
  expect([kindOf(false), kindOf(true)]).toEqual(['payment', 'nothing'])
})

test('what is not read is not kept, and an id fits with all that is added to it', () => {
  const charge = { id: 'c'.repeat(180), currency: 'usd', amount_refunded: 100_000_000_000 }
  const hostile = JSON.parse('{"constructor":"\\u0000","__proto__":{"id":"x"}}') as object
  const { effect } = read('charge.refunded', { ...charge, ...hostile, metadata: hostile })
  expect(effect).toEqual({
    kind: 'refund',
    charge: charge.id,
    paymentIntent: null,
    invoice: null,
    microUsd: 1e15,
  })
  expect(`${charge.id}:1000000000000000`.length).toBeLessThanOrEqual(200)
})

test.each([
  ['no members', {}, 'body.data.object.id'],
  ['no id', { id: undefined }, 'body.data.object.id'],
  ['a negative amount', { ...session, amount_total: -1 }, 'body.data.object.amount_total'],
  ['half a cent', { ...session, amount_total: 0.5 }, 'body.data.object.amount_total'],
  [
    'an amount that is a text',
    { ...session, amount_total: '2000' },
    'body.data.object.amount_total',
  ],
  ['an endless amount', { ...session, amount_total: 1e300 }, 'body.data.object.amount_total'],
  [
    'a tax that is a text',
    { ...session, total_details: { amount_tax: '400' } },
    'body.data.object.total_details.amount_tax',
  ],
  ['an endless id', { ...session, id: 'x'.repeat(181) }, 'body.data.object.id'],
  ['an id with NUL', { ...session, id: 'cs_\u0000' }, 'body.data.object.id'],
  ['an empty id', { ...session, id: '' }, 'body.data.object.id'],
  ['a customer with a space', { ...session, customer: 'cus 1' }, 'body.data.object.customer'],
  ['NUL for a currency', { ...session, currency: '\u0000' }, 'body.data.object.currency'],
])('an event that matters and has %s is refused, so that it is sent again', (_, object, param) => {
  let thrown: unknown
  try {
    read('checkout.session.completed', object)
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(ApiError)
  expect((thrown as ApiError).status).toBe(422)
  expect((thrown as ApiError).param).toBe(param)
})
