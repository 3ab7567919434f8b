import { Readable } from 'node:stream'

import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { operator } from '#audit/event.ts'
import { findAccount } from '#credits/holds/account-store.ts'
import { recordPayment } from '#credits/payments/payments.ts'
import { transact } from '#platform/transaction.ts'
import {
  addProcess,
  sendToWebhook,
  stripeEnvironment,
  stripeEvent,
  stripeSecret,
} from '#testing/stripe/stripe-events.ts'
import {
  createStripeTestApi,
  invoicePaid,
  itemsOf,
  refunded,
  session,
  subscription,
  usd,
} from '#testing/stripe/stripe-test-api.ts'

import { lockEvents } from './event-store.ts'
import { sweepPaymentEvents } from './sweep-events.ts'

// What Stripe sends, signed as Stripe signs, to the whole API on a real database.

test('404: without a secret there is no webhook, signed or not', async () => {
  const { send } = await createStripeTestApi({ environment: {} })
  const event = session({ client_reference_id: 'org_1' })
  for (const secret of ['', stripeSecret]) {
    const answer = await send(event, { secret })
    expect([answer.status, answer.error?.code]).toEqual([404, 'webhook_not_configured'])
  }
})

test('400: forged, unsigned, replayed and tampered events change nothing', async () => {
  const { send, id, state, events } = await createStripeTestApi()
  const event = session({ client_reference_id: id })
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000)
  for (const sending of [
    { header: null },
    { header: '' },
    { header: `t=${Math.floor(Date.now() / 1000)},v1=${'0'.repeat(64)}` },
    { secret: 'whsec_of_another_account_entirely' },
    { secret: '' },
    { at: minutesAgo(6) },
    { at: minutesAgo(-6) },
  ]) {
    const answer = await send(event, sending)
    expect([answer.status, answer.error?.code], JSON.stringify(sending)).toEqual([
      400,
      'invalid_signature',
    ])
  }
  expect([await state(), await events()]).toEqual([[0, 0, 'free'], []])
})

test('400 and 422: what is signed and cannot be understood is sent again, not swallowed', async () => {
  const { send, events } = await createStripeTestApi()
  expect(await send('{"id":')).toMatchObject({ status: 400, error: { code: 'invalid_json' } })
  expect(await send({ type: 'x', created: 1 })).toMatchObject({ status: 422 })
  const answer = await send(session({ amount_total: '2000' }))
  expect(answer).toMatchObject({
    status: 422,
    error: { param: 'body.data.object.amount_total' },
  })
  expect(await events()).toEqual([])
})

test('413: a body of more than 256 KiB is not read, and nothing of one that cannot be signed', async () => {
  const large = session({ description: 'x'.repeat(256 * 1024) })
  const { send } = await createStripeTestApi()
  const answerOf = async (...sending: Parameters<typeof send>) => {
    const { status, error } = await send(...sending)
    return [status, error?.code]
  }
  expect(await answerOf(large)).toEqual([413, 'request_too_large'])
  for (const header of [null, '', 'v1=0', `t=1,v1=${'0'.repeat(63)}`]) {
    expect(await answerOf(large, { header })).toEqual([400, 'invalid_signature'])
  }
  const without = await createStripeTestApi({ environment: {} })
  expect(await without.send(large)).toMatchObject({ status: 404 })
})

test('411: a body in chunks is not read, because its sender is unknown until all of it has arrived', async () => {
  const { app } = await createStripeTestApi()
  const { statusCode, body } = await app.inject({
    method: 'POST',
    url: '/v1/webhooks/stripe',
    headers: {
      'stripe-signature': `t=1,v1=${'0'.repeat(64)}`,
      'content-type': 'application/json',
      'transfer-encoding': 'chunked',
    },
    payload: Readable.from(['{}']),
  })
  expect([statusCode, JSON.parse(body)]).toMatchObject([
    411,
    { error: { code: 'length_required' } },
  ])
})

test('503: more events than can wait are refused', async () => {
  const { send, db } = await createStripeTestApi()
  const answers = await transact(db, async (tx) => {
    await lockEvents(tx)
    const sent = Array.from({ length: 202 }, () => send(stripeEvent('plan.created', {})))
    const first = await Promise.race(sent)
    return { first, sent }
  })
  expect(answers.first).toMatchObject({ status: 503, error: { code: 'overloaded' } })
  expect(answers.first.error?.message).toBe('Too many Stripe events are waiting.')
  const all = await Promise.all(answers.sent)
  expect(all.filter(({ status }) => status === 200)).toHaveLength(201)
})

test('200: a payment adds credits, counts towards the tier, and its event names Stripe', async () => {
  const { send, id, state, events, db } = await createStripeTestApi()
  const event = session({ client_reference_id: id })
  const answer = await send(event)
  expect(answer).toMatchObject({ status: 200, received: true, outcome: 'applied' })
  expect(await state()).toEqual([usd(20), usd(20), 'free'])
  expect(await events()).toEqual([[event.id, 'applied', id]])
  const revisions = await db.selectFrom('event').select('header').orderBy('seq', 'desc').execute()
  expect(revisions[0]?.header).toMatchObject({
    actor: 'stripe',
    request_id: answer.requestId,
    payment_id: 'pi_1',
  })
  const changes = await db.selectFrom('config_change').select(['kind', 'object_id']).execute()
  expect(changes).toContainEqual({ kind: 'organization', object_id: id })
})

test('200: an event that two processes receive ten times at once counts once', async () => {
  const { send, id, state, house } = await createStripeTestApi()
  const other = await addProcess(house)
  const event = session({ metadata: { organization_id: id } })
  const answers = await Promise.all(
    Array.from({ length: 10 }).flatMap(() => [send(event), sendToWebhook(other, event)]),
  )
  const outcomes = answers.map(({ outcome }) => String(outcome)).toSorted()
  expect(outcomes).toEqual(['applied', ...Array.from({ length: 19 }, () => 'duplicate')])
  expect(await state()).toEqual([usd(20), usd(20), 'free'])
})

test('200: two events about one payment count once', async () => {
  const { send, id, state } = await createStripeTestApi()
  const one = session({ client_reference_id: id })
  const { object } = one.data
  expect(await send(one)).toMatchObject({ outcome: 'applied' })
  await send(stripeEvent('checkout.session.async_payment_succeeded', object))
  expect(await state()).toEqual([usd(20), usd(20), 'free'])
})

test('200: a subscription is paid by its invoice, not by its session as well', async () => {
  const { send, id, state } = await createStripeTestApi()
  const start = { mode: 'subscription', invoice: 'in_1', amount_total: 900, payment_intent: null }
  await send(session({ ...start, client_reference_id: id }))
  expect(await state()).toEqual([0, 0, 'free'])
  await send(invoicePaid())
  expect(await state()).toEqual([usd(9), usd(9), 'free'])
})

test('200: a session that makes an invoice is paid by that invoice alone', async () => {
  const { send, id, state } = await createStripeTestApi()
  const invoiced = { invoice_creation: { enabled: true }, amount_total: 900 }
  await send(session({ ...invoiced, client_reference_id: id }))
  await send(invoicePaid({ payment_intent: 'pi_1' }))
  expect(await state()).toEqual([usd(9), usd(9), 'free'])
})

test('200: what belongs to an unknown customer waits, and is applied when the customer is known', async () => {
  const { send, id, state, events } = await createStripeTestApi()
  expect(await send(invoicePaid())).toMatchObject({ outcome: 'waiting' })
  expect(await send(subscription('created', {}))).toMatchObject({ outcome: 'waiting' })
  expect(await state()).toEqual([0, 0, 'free'])
  const start = { mode: 'subscription', invoice: 'in_1', client_reference_id: id }
  expect(await send(session(start))).toMatchObject({ outcome: 'applied' })
  expect(await state()).toEqual([usd(9), usd(9), 'developer'])
  expect((await events()).map(([, state, owner]) => [state, owner])).toEqual(
    Array.from({ length: 3 }, () => ['applied', id]),
  )
})

test('200: a refund before its payment waits for it; the largest sum counts, in any order', async () => {
  const { send, id, state, events } = await createStripeTestApi()
  expect(await send(refunded(1200))).toMatchObject({ outcome: 'waiting' })
  expect(await send(refunded(500))).toMatchObject({ outcome: 'waiting' })
  await send(session({ client_reference_id: id, customer: null }))
  expect(await state()).toEqual([usd(8), usd(8), 'free'])
  expect(await send(refunded(700))).toMatchObject({ outcome: 'applied' })
  expect(await state()).toEqual([usd(8), usd(8), 'free'])
  expect(await send(refunded(2000))).toMatchObject({ outcome: 'applied' })
  expect(await state()).toEqual([0, 0, 'free'])
  expect((await events()).map(([, state, owner]) => [state, owner])).toEqual(
    Array.from({ length: 5 }, () => ['applied', id]),
  )
})

test.each([
  ['its charge names the invoice', { invoice: 'in_1' }, undefined],
  ['an event links them', {}, 'pi_1'],
])('200: the refund of an invoice is found when %s', async (_, charge, paymentIntent) => {
  const { send, id, state } = await createStripeTestApi()
  await send(refunded(400, charge))
  await send(invoicePaid({ metadata: { organization_id: id } }))
  if (paymentIntent) {
    expect(await state()).toEqual([usd(9), usd(9), 'free'])
    const payment = { type: 'payment_intent', payment_intent: paymentIntent }
    await send(stripeEvent('invoice_payment.paid', { invoice: 'in_1', payment }))
  }
  expect(await state()).toEqual([usd(5), usd(5), 'free'])
})

test('200: what was spent before the refund is written off; the balance stays at zero', async () => {
  const { send, id, state, db } = await createStripeTestApi()
  await send(session({ client_reference_id: id }))
  await sql`update credit_account set posted = posted - ${usd(15)}, used = ${usd(15)}
    where organization_id = ${id}`.execute(db)
  await send(refunded(2000))
  expect(await state()).toEqual([0, 0, 'free'])
  const entries = await db.selectFrom('ledger_entry').select(['kind', 'amount']).execute()
  expect(entries).toContainEqual({ kind: 'writeoff', amount: String(usd(15)) })
})

test('200: the highest plan of the active subscriptions counts; old news and an end are respected', async () => {
  const { send, id, state } = await createStripeTestApi()
  const own = { metadata: { organization_id: id } }
  const plan = async () => (await state())[2]
  await send(subscription('created', { ...own, status: 'incomplete' }, 100))
  expect(await plan()).toBe('free')
  await send(subscription('updated', own, 100))
  expect(await plan()).toBe('developer')
  await send(subscription('created', { ...own, id: 'sub_2', ...itemsOf('p', 'prod_growth') }, 110))
  expect(await plan()).toBe('growth')
  await send(subscription('updated', { ...own, status: 'unpaid' }, 99))
  await send(subscription('deleted', { ...own, id: 'sub_2', ...itemsOf('p', 'prod_growth') }, 120))
  expect(await plan()).toBe('developer')
  await send(subscription('updated', { ...own, id: 'sub_2', ...itemsOf('p', 'prod_growth') }, 130))
  expect(await plan()).toBe('developer')
  await send(subscription('updated', { ...own, ...itemsOf('price_unknown', 'prod_x') }, 140))
  expect(await plan()).toBe('free')
})

test('200: money that cannot be counted is ignored, and a problem in the log', async () => {
  const { send, id, state, problem, house } = await createStripeTestApi()
  const cases: [object, string][] = [
    [session({ client_reference_id: id, currency: 'eur' }), 'the currency is eur'],
    [session({ metadata: { organization_id: 'org_none' } }), "has the id 'org_none'"],
    [session({ client_reference_id: 'org_no', customer: null }), "has the id 'org_no'"],
    [session({ metadata: { organization_id: 7 }, client_reference_id: id }), 'organization_id'],
    [subscription('created', { metadata: { organization_id: '' } }), 'organization_id'],
    [session({ customer: null }), 'neither an organization nor a customer'],
    [{ ...session({ client_reference_id: id }), livemode: false }, 'not in live mode'],
    [{ ...session({ client_reference_id: id }), account: 'acct_1' }, 'a connected account'],
  ]
  for (const [event, why] of cases) {
    problem.mockClear()
    expect(await send(event)).toMatchObject({ status: 200 })
    expect(String(problem.mock.calls[0]?.[1])).toContain(why)
  }
  expect(await state()).toEqual([0, 0, 'free'])
  const { values } = await house.metrics.paymentEvents.get()
  expect(values.map(({ labels, value }) => [labels['outcome'], value])).toContainEqual([
    'ignored',
    cases.length - 1,
  ])
})

test('200: a reference that names no organization does not hide whose customer it is', async () => {
  const { send, id, state, problem } = await createStripeTestApi()
  const stray = { client_reference_id: 'cart_7' }
  expect(await send(session(stray))).toMatchObject({ outcome: 'waiting' })
  expect(String(problem.mock.calls[0]?.[1])).toContain("no organization has the id 'cart_7'")
  problem.mockClear()
  await send(session({ client_reference_id: id, payment_intent: 'pi_2' }))
  expect(await state()).toEqual([usd(40), usd(40), 'free'])
  const third = await send(session({ ...stray, payment_intent: 'pi_3' }))
  expect(third).toMatchObject({ outcome: 'applied' })
  expect(await state()).toEqual([usd(60), usd(60), 'free'])
  expect(problem).not.toHaveBeenCalled()
})

test('200: in test mode, only test events count', async () => {
  const environment = { ...stripeEnvironment, STRIPE_MODE: 'test' }
  const { send, id, state } = await createStripeTestApi({ environment })
  const event = session({ client_reference_id: id })
  expect(await send(event)).toMatchObject({ outcome: 'ignored' })
  const own = { ...session({ client_reference_id: id }), livemode: false }
  expect(await send(own)).toMatchObject({ outcome: 'applied' })
  expect(await state()).toEqual([usd(20), usd(20), 'free'])
})

test('200: what else an event holds does not matter, whatever it is called', async () => {
  const { send, id, state, db } = await createStripeTestApi()
  const { data, ...event } = session({ metadata: { organization_id: id }, after: 'AFTER' })
  const odd = '{"constructor":"\\u0000","__proto__":{"id":1},"\\u0000":"\\ud800","n":1e999}'
  const object = JSON.stringify(data.object).replace('"AFTER"', odd)
  const text = JSON.stringify({ ...event, constructor: '\u0000', data: 'DATA' })
  const answer = await send(text.replace('"DATA"', `{"object":${object},"__proto__":null}`))
  expect(answer).toMatchObject({ status: 200, outcome: 'applied' })
  expect(await state()).toEqual([usd(20), usd(20), 'free'])
  const { effect } = await db.selectFrom('payment_event').select('effect').executeTakeFirstOrThrow()
  expect(effect).toEqual({
    kind: 'payment',
    links: [],
    microUsd: usd(20),
    chargedMicroUsd: usd(20),
    reference: 'pi_1',
  })
})

test('422: NUL in what is read is never a 500, for any type of event', async () => {
  const { send, events } = await createStripeTestApi()
  const nul = { id: 'x\u0000' }
  for (const event of [
    { ...session({}), ...nul },
    { ...session({}), type: 'x\u0000' },
    session({ currency: 'us\u0000' }),
    session({ payment_intent: 'pi_\u0000' }),
    refunded(5, nul),
    refunded(5, { payment_intent: nul }),
    invoicePaid({ customer: nul }),
    invoicePaid({ payments: { data: [{ payment: { payment_intent: nul.id } }] } }),
    subscription('created', nul),
    subscription('created', itemsOf(nul.id, 'prod_x')),
  ]) {
    expect((await send(event)).status, JSON.stringify(event)).toBe(422)
  }
  expect(await events()).toEqual([])
})

test('200: events of other types are ignored and not logged', async () => {
  const { send, problem } = await createStripeTestApi()
  const answer = await send(stripeEvent('payment_method.attached', { id: 'pm_1' }))
  expect(answer).toMatchObject({ status: 200, outcome: 'ignored' })
  expect(problem).not.toHaveBeenCalled()
})

test('200: a payment that the operator recorded by the operator does not count again', async () => {
  const { send, id, state, house, problem } = await createStripeTestApi()
  const deps = { ...house, by: operator }
  await recordPayment(id, { id: 'pi_1', amount: BigInt(usd(20)) }, deps)
  await recordPayment(id, { id: 'pi_2', amount: BigInt(usd(3)) }, deps)
  expect(await send(session({ client_reference_id: id }))).toMatchObject({ outcome: 'applied' })
  const other = session({ client_reference_id: id, payment_intent: 'pi_2' })
  expect(await send(other)).toMatchObject({ outcome: 'ignored' })
  expect(String(problem.mock.calls[0]?.[1])).toContain('with another amount')
  expect(await state()).toEqual([usd(23), usd(23), 'free'])
})

const linked = {
  payments: { data: [{ payment: { type: 'payment_intent', payment_intent: 'pi_1' } }] },
}

test('200: a payment recorded by the operator under its payment intent is not counted again by its invoice', async () => {
  const { send, id, state, house, problem } = await createStripeTestApi()
  await recordPayment(id, { id: 'pi_1', amount: BigInt(usd(9)) }, { ...house, by: operator })
  const metadata = { organization_id: id }
  expect(await send(invoicePaid({ ...linked, metadata }))).toMatchObject({ outcome: 'applied' })
  expect(await state()).toEqual([usd(9), usd(9), 'free'])
  expect(problem).not.toHaveBeenCalled()
  await send(refunded(900))
  expect(await state()).toEqual([0, 0, 'free'])
})

test('a payment that Stripe has reported by its invoice cannot be recorded by its payment intent', async () => {
  const { send, id, state, house } = await createStripeTestApi()
  await send(invoicePaid({ ...linked, metadata: { organization_id: id } }))
  const again = recordPayment(
    id,
    { id: 'pi_1', amount: BigInt(usd(9)) },
    { ...house, by: operator },
  )
  await expect(again).rejects.toThrow("'pi_1' is the payment 'in_1', which is recorded already.")
  expect(await state()).toEqual([usd(9), usd(9), 'free'])
})

test('200: two payments that turn out to be one are a problem in the log', async () => {
  const { send, id, house, problem } = await createStripeTestApi()
  await recordPayment(id, { id: 'pi_1', amount: BigInt(usd(9)) }, { ...house, by: operator })
  await send(invoicePaid({ metadata: { organization_id: id } }))
  expect(problem).not.toHaveBeenCalled()
  await send(invoicePaid({ ...linked, metadata: { organization_id: id } }))
  expect(String(problem.mock.calls[0]?.[1])).toContain('pi_1 and in_1 are the same payment')
})

test.each([
  ['its payment intent', 'pi_1', {}],
  ['its invoice', 'in_1', { invoice: 'in_1' }],
])(
  '200: a refund finds the payment recorded by the operator under the id of %s',
  async (_, paid, of) => {
    const { send, id, state, house } = await createStripeTestApi()
    await recordPayment(id, { id: paid, amount: BigInt(usd(20)) }, { ...house, by: operator })
    expect(await send(refunded(500, of))).toMatchObject({ outcome: 'applied' })
    expect(await send(refunded(700, of))).toMatchObject({ outcome: 'applied' })
    expect(await state()).toEqual([usd(13), usd(13), 'free'])
    const late =
      paid === 'pi_1' ? session({ client_reference_id: id }) : invoicePaid({ amount_paid: 2000 })
    await send(late)
    expect(await state()).toEqual([usd(13), usd(13), 'free'])
  },
)

test('200: a refund of a payment that two organizations recorded by the operator waits until an event names one', async () => {
  const { send, id, state, house, problem } = await createStripeTestApi()
  const deps = { ...house, by: operator }
  const other = await createOrganization('Other', house)
  for (const each of [id, other.organizationId]) {
    await recordPayment(each, { id: 'pi_1', amount: BigInt(usd(20)) }, deps)
  }
  expect(await send(refunded(500))).toMatchObject({ outcome: 'waiting' })
  expect(await state()).toEqual([usd(20), usd(20), 'free'])
  expect(await send(session({ client_reference_id: id }))).toMatchObject({ outcome: 'applied' })
  expect(await state()).toEqual([usd(15), usd(15), 'free'])
  const stray = session({ metadata: { organization_id: other.organizationId } })
  expect(await send(stray)).toMatchObject({ outcome: 'ignored' })
  expect(String(problem.mock.calls[0]?.[1])).toContain(
    `already counted for the organization '${id}'`,
  )
})

test.each(['the payment', 'the refund'])(
  '200: what was recorded by the operator for another organization counts there alone, if %s is reported first',
  async (first) => {
    const { send, id, state, house, db, problem } = await createStripeTestApi()
    const { organizationId } = await createOrganization('Other', house)
    await recordPayment(
      organizationId,
      { id: 'pi_1', amount: BigInt(usd(20)) },
      { ...house, by: operator },
    )
    const sent = [session({ client_reference_id: id }), refunded(500)]
    for (const event of first === 'the payment' ? sent : sent.toReversed()) await send(event)
    expect(await state()).toEqual([0, 0, 'free'])
    expect((await findAccount(db, organizationId))?.posted).toBe(BigInt(usd(15)))
    expect(problem.mock.calls.map(([, error]) => String(error))).toEqual([
      expect.stringContaining(`already counted for the organization '${organizationId}'`),
    ])
  },
)

test('200: a refund that came before its payment was recorded by the operator is applied when Stripe reports it', async () => {
  const { send, id, state, house } = await createStripeTestApi()
  expect(await send(refunded(500))).toMatchObject({ outcome: 'waiting' })
  await recordPayment(id, { id: 'pi_1', amount: BigInt(usd(3)) }, { ...house, by: operator })
  expect(await send(session({ client_reference_id: id }))).toMatchObject({ outcome: 'ignored' })
  expect(await state()).toEqual([0, 0, 'free'])
})

test('500: an event that fails half way leaves nothing behind, and succeeds when it is sent again', async () => {
  let isBroken = false
  const { send, id, state, events } = await createStripeTestApi({
    change: (house) => ({
      ...house,
      announce: async (tx, announcement) => {
        await house.announce(tx, announcement)
        if (isBroken) throw new Error('broken half way')
      },
    }),
  })
  const event = session({ client_reference_id: id })
  isBroken = true
  expect(await send(event)).toMatchObject({ status: 500 })
  expect([await state(), await events()]).toEqual([[0, 0, 'free'], []])
  isBroken = false
  expect(await send(event)).toMatchObject({ status: 200, outcome: 'applied' })
  expect(await state()).toEqual([usd(20), usd(20), 'free'])
})

test('old events are removed a few at a time, and named if they still waited; an old event sent again still counts once', async () => {
  const { send, id, state, events, db, problem, house } = await createStripeTestApi()
  const event = session({ client_reference_id: id })
  await send(event)
  await send(refunded(500))
  const refund = refunded(100, { id: 'ch_2', payment_intent: 'pi_never' })
  const payment = invoicePaid({ customer: 'cus_never' })
  for (const each of [refund, payment]) expect(await send(each)).toMatchObject({ status: 200 })
  expect(problem).not.toHaveBeenCalled()
  const sweep = (before: Date, limit: number) => sweepPaymentEvents(house, before, limit)
  expect(await sweep(new Date(Date.now() - 60_000), 10)).toBe(0)
  expect(await sweep(new Date(Date.now() + 60_000), 3)).toBe(3)
  expect(await events()).toHaveLength(1)
  expect(await sweep(new Date(Date.now() + 60_000), 3)).toBe(1)
  const lost = problem.mock.calls.map(([, error]) => (error as Error).message)
  expect(lost.toSorted()).toEqual([
    `charge.refunded ${refund.id}`,
    `invoice.paid ${payment.id}`,
    'the refund or dispute of ch_2',
  ])
  const left = await db.selectFrom('payment_refund').select('charge').execute()
  expect(left).toEqual([{ charge: 'ch_1' }])
  for (const each of [event, refunded(500)]) await send(each)
  expect(await state()).toEqual([usd(15), usd(15), 'free'])
})
