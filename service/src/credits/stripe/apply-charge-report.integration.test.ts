import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { operator, stripeActor } from '#audit/event.ts'
import { recordPayment } from '#credits/payments/payments.ts'
import { refundPayment } from '#credits/payments/refunds.ts'
import { reconcile } from '#credits/reconcile/reconcile.ts'
import { transact } from '#platform/transaction.ts'
import { connectServer } from '#testing/migrated-template.ts'
import {
  addProcess,
  sendToWebhook,
  type StripeEvent,
  stripeEvent,
} from '#testing/stripe/stripe-events.ts'
import {
  createStripeTestApi,
  disputed,
  failedRefund,
  invoicePaid,
  refunded,
  refundFailed,
  session,
  usd,
} from '#testing/stripe/stripe-test-api.ts'

import { sweepPaymentEvents } from './sweep-events.ts'

// Disputes, failed refunds and tax, as Stripe reports them to the whole API on a real database.

const tax = { amount_total: 2400, total_details: { amount_tax: 400, amount_shipping: 0 } }

async function createShop(options?: Parameters<typeof createStripeTestApi>[0]) {
  const api = await createStripeTestApi(options)
  const { db, id } = api
  return {
    ...api,
    pay: (changes: object = {}) => session({ client_reference_id: id, customer: null, ...changes }),
    /** The balance, which is also what counts towards the tier unless credits were spent. */
    async balance(organizationId = id) {
      const [posted, paid] = await api.state(organizationId)
      return { posted: Number(posted) / 1_000_000, paid: Number(paid) / 1_000_000 }
    },
    entries: (organizationId = id) =>
      db
        .selectFrom('ledger_entry')
        .select(['id', 'kind', 'debit', 'credit', sql<number>`amount::float8 / 1000000`.as('usd')])
        .where('organization_id', '=', organizationId)
        .orderBy('seq')
        .execute(),
    /** As calls do. */
    spend: (amount: number) =>
      sql`update credit_account set posted = posted - ${usd(amount)}, used = used + ${usd(amount)}
        where organization_id = ${id}`.execute(db),
    differences: async () => (await reconcile(db)).differences,
  }
}

const both = (amount: number) => ({ posted: amount, paid: amount })

function permute<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]]
  return items.flatMap((item, index) =>
    permute(items.toSpliced(index, 1)).map((rest) => [item, ...rest]),
  )
}

test('200: a dispute takes the credits back at once; when it is won they return, when lost they do not', async () => {
  const { send, pay, balance, entries, events, id, differences } = await createShop()
  await send(pay())
  const opened = disputed('created', {}, 1)
  expect(await send(opened)).toMatchObject({ status: 200, outcome: 'applied' })
  expect(await balance()).toEqual(both(0))
  expect(await send(opened)).toMatchObject({ outcome: 'duplicate' })
  expect(await send(disputed('closed', { status: 'won' }, 2))).toMatchObject({ outcome: 'applied' })
  expect(await balance()).toEqual(both(20))
  // The same news in other events.
  for (const again of [disputed('created', {}, 1), disputed('closed', { status: 'won' }, 3)]) {
    expect(await send(again)).toMatchObject({ outcome: 'applied' })
    expect(await balance()).toEqual(both(20))
  }
  await send(disputed('created', { id: 'dp_2', amount: 500 }, 4))
  await send(disputed('closed', { id: 'dp_2', amount: 500, status: 'lost' }, 5))
  expect(await balance()).toEqual(both(15))
  expect((await entries()).slice(1)).toEqual([
    { id: 'pi_1:refund-1', kind: 'refund', debit: 'wallet', credit: 'refund', usd: 20 },
    { id: 'pi_1:refund-2', kind: 'refund', debit: 'refund', credit: 'wallet', usd: 20 },
    { id: 'pi_1:refund-3', kind: 'refund', debit: 'wallet', credit: 'refund', usd: 5 },
  ])
  expect(new Set((await events()).map(([, state, owner]) => `${state} ${owner}`))).toEqual(
    new Set([`applied ${id}`]),
  )
  expect(await differences()).toEqual([])
})

test.each(['won', 'warning_closed', 'lost'])(
  '200: a dispute that ends as %s comes out the same in every order of its events',
  async (status) => {
    const { send, house, balance, differences } = await createShop()
    for (const [run, order] of permute([0, 1, 2]).entries()) {
      const { organizationId } = await createOrganization('Anybody', house)
      const own = { charge: `ch_${run}`, payment_intent: `pi_${run}`, id: `dp_${run}` }
      const paid = { client_reference_id: organizationId, payment_intent: own.payment_intent }
      const sent = [
        session({ ...paid, customer: null }),
        disputed('created', own, 1),
        disputed('closed', { ...own, status }, 2),
      ]
      await send(refunded(500, { id: own.charge, payment_intent: own.payment_intent }))
      for (const index of order) {
        expect((await send(sent[index]!)).outcome).toMatch(/^(applied|waiting)$/)
      }
      for (const index of order) await send({ ...sent[index]!, id: `evt_again_${run}_${index}` })
      const expected = status === 'lost' ? 0 : 15
      expect(await balance(organizationId), order.join()).toEqual(both(expected))
    }
    expect(await differences()).toEqual([])
  },
)

test('200: a refund that failed is undone once, whichever events say so; one that follows it counts', async () => {
  const { send, pay, balance, differences } = await createShop()
  await send(pay())
  await send(refunded(1200, {}, 1))
  expect(await balance()).toEqual(both(8))
  for (const type of ['refund.failed', 'refund.updated', 'charge.refund.updated']) {
    expect(
      await send(stripeEvent(type, failedRefund(1200), { created: 1_780_315_202 })),
    ).toMatchObject({
      outcome: 'applied',
    })
    expect(await balance()).toEqual(both(20))
  }
  await send(refunded(2000, {}, 3)) // the failed one is not in the sum any more
  expect(await balance()).toEqual(both(0))
  await send(refunded(1200, {}, 1))
  expect(await balance()).toEqual(both(0))
  expect(await differences()).toEqual([])
})

test('200: refunds, of which one fails and is repeated, come out the same in every order', async () => {
  const { send, house, balance, differences } = await createShop()
  for (const [run, order] of permute([0, 1, 2, 3]).entries()) {
    const { organizationId } = await createOrganization('Anybody', house)
    const payment_intent = `pi_${run}`
    const charge = { id: `ch_${run}`, payment_intent }
    const status = run % 2 === 0 ? 'failed' : 'canceled'
    const failure = { id: `re_${run}`, charge: charge.id, payment_intent, status }
    const sent = [
      session({ client_reference_id: organizationId, customer: null, payment_intent }),
      refunded(1200, charge, 1),
      refundFailed(1200, failure, 2),
      refunded(700, charge, 3),
    ]
    for (const index of order) expect(await send(sent[index]!)).toMatchObject({ status: 200 })
    expect(await balance(organizationId), order.join()).toEqual(both(13))
  }
  expect(await differences()).toEqual([])
})

test('200: a refund that is under way or has succeeded changes nothing by itself', async () => {
  const { send, pay, balance, problem } = await createShop()
  await send(pay())
  for (const status of ['pending', 'requires_action', 'succeeded']) {
    const event = stripeEvent('refund.updated', failedRefund(2000, { status }))
    expect(await send(event)).toMatchObject({ outcome: 'ignored' })
  }
  expect(await balance()).toEqual(both(20))
  expect(problem).not.toHaveBeenCalled()
})

test('200: tax is not credited; refunds and disputes take back in proportion, never more than was credited', async () => {
  const { send, pay, balance, differences } = await createShop()
  await send(pay(tax))
  expect(await balance()).toEqual(both(20))
  await send(refunded(600, {}, 1))
  expect(await balance()).toEqual(both(15))
  await send(disputed('created', { amount: 1800 }, 2))
  expect(await balance()).toEqual(both(0))
  await send(disputed('closed', { amount: 1800, status: 'won' }, 3))
  expect(await balance()).toEqual(both(15))
  await send(refunded(99_999, {}, 4))
  expect(await balance()).toEqual(both(0))
  expect(await differences()).toEqual([])
})

test('200: the tax of an invoice is not credited, and its refund is found by the link to its payment', async () => {
  const { send, id, balance } = await createShop()
  await send(refunded(450))
  await send(disputed('created', { amount: 450 }))
  const taxed = { metadata: { organization_id: id }, total: 900, total_taxes: [{ amount: 150 }] }
  await send(invoicePaid(taxed))
  expect(await balance()).toEqual(both(7.5))
  const payment = { type: 'payment_intent', payment_intent: 'pi_1' }
  await send(stripeEvent('invoice_payment.paid', { invoice: 'in_1', payment }))
  expect(await balance()).toEqual(both(0))
  await send(disputed('closed', { amount: 450, status: 'won' }))
  expect(await balance()).toEqual(both(3.75))
})

test('200: a refund before the event that tells the tax is corrected by it', async () => {
  const { send, pay, balance, house, id } = await createShop()
  await recordPayment(id, { id: 'pi_1', amount: BigInt(usd(20)) }, { ...house, by: operator })
  await send(refunded(1200))
  expect(await balance()).toEqual(both(8))
  expect(await send(pay(tax))).toMatchObject({ outcome: 'applied' })
  expect(await balance()).toEqual(both(10))
})

test('200: of a payment that the operator recorded with its tax, as much is taken back as was refunded', async () => {
  const { send, pay, balance, house, id } = await createShop()
  await recordPayment(id, { id: 'pi_1', amount: BigInt(usd(24)) }, { ...house, by: operator })
  expect(await send(pay(tax))).toMatchObject({ outcome: 'ignored' })
  await send(refunded(1200))
  expect(await balance()).toEqual(both(12))
})

test('200: spent credits are written off; when the dispute is won, what was spent does not return', async () => {
  const { send, pay, spend, balance, entries, differences } = await createShop()
  await send(pay())
  await spend(12)
  await send(disputed('created'))
  expect(await balance()).toEqual(both(0))
  await send(disputed('created', { amount: 1500 }, 1)) // of 20 USD, 5 were not disputed after all
  expect(await balance()).toEqual({ posted: 0, paid: 5 })
  await send(disputed('closed', { amount: 1500, status: 'won' }, 2))
  expect(await balance()).toEqual({ posted: 8, paid: 20 })
  const moves = (await entries()).map((entry) => [entry.id, entry.debit, entry.credit, entry.usd])
  expect(moves.slice(1)).toEqual([
    ['pi_1:refund-1', 'wallet', 'refund', 8],
    ['pi_1:refund-1:writeoff', 'writeoff', 'refund', 12],
    ['pi_1:refund-2', 'refund', 'wallet', 0],
    ['pi_1:refund-2:writeoff', 'refund', 'writeoff', 5],
    ['pi_1:refund-3', 'refund', 'wallet', 8],
    ['pi_1:refund-3:writeoff', 'refund', 'writeoff', 7],
  ])
  // The spending of this test has no entry; everything else agrees.
  expect((await differences()).map(({ what }) => what)).toEqual(['posted', 'used'])
})

test('200: what the operator has refunded is neither taken twice nor undone', async () => {
  const { send, pay, balance, house, id } = await createShop()
  await send(pay())
  const refund = { id: 'pi_1:refund-2', paymentId: 'pi_1', amount: BigInt(usd(15)) }
  await refundPayment(id, refund, { ...house, by: operator })
  await send(disputed('created'))
  expect(await balance()).toEqual(both(0))
  await send(disputed('closed', { status: 'won' }))
  expect(await balance()).toEqual(both(5))
  await expect(
    refundPayment(
      id,
      { ...refund, id: 'more', amount: BigInt(usd(6)) },
      { ...house, by: operator },
    ),
  ).rejects.toThrow("Only 5.00 USD of the payment 'pi_1' can be refunded")
})

test('200: events that two processes receive many times at once count once', async () => {
  const { send, pay, house, balance, entries, differences } = await createShop()
  const other = await addProcess(house)
  const flood = (event: StripeEvent) => [
    ...Array.from({ length: 5 }, () => send(event)),
    ...Array.from({ length: 5 }, () => sendToWebhook(other, event)),
  ]
  await send(pay(tax))
  const first = await Promise.all(flood(disputed('created', { amount: 2400 })))
  expect(first.filter(({ outcome }) => outcome === 'applied')).toHaveLength(1)
  expect(await balance()).toEqual(both(0))
  await Promise.all([
    ...flood(disputed('closed', { amount: 2400, status: 'won' }, 4)),
    ...flood(refunded(1200, {}, 1)),
    ...flood(refundFailed(1200, {}, 2)),
    ...flood(refunded(600, {}, 3)),
  ])
  expect(await balance()).toEqual(both(15))
  const taken = (await entries()).reduce((sum, { debit, credit, usd: amount }) => {
    if (debit === 'wallet') return sum - amount
    return credit === 'wallet' ? sum + amount : sum
  }, 0)
  expect(taken).toBe(15)
  expect(await differences()).toEqual([])
})

test.each(['disputed', 'won', 'failed'])(
  '500: a report that fails half way leaves nothing behind, and counts when it is sent again (%s)',
  async (which) => {
    let isBroken = false
    const { send, pay, balance, events, entries } = await createShop({
      change: (house) => ({
        ...house,
        announce: async (tx, announcement) => {
          await house.announce(tx, announcement)
          if (isBroken) throw new Error('broken half way')
        },
      }),
    })
    await send(pay())
    await send(refunded(500))
    if (which === 'won') await send(disputed('created', { amount: 1000 }))
    const event = {
      disputed: disputed('created', { amount: 1000 }),
      won: disputed('closed', { amount: 1000, status: 'won' }),
      failed: refundFailed(500),
    }[which]!
    const before = [await balance(), await events(), await entries()]
    isBroken = true
    expect(await send(event)).toMatchObject({ status: 500 })
    expect([await balance(), await events(), await entries()]).toEqual(before)
    isBroken = false
    expect(await send(event)).toMatchObject({ status: 200, outcome: 'applied' })
    expect(await balance()).toEqual(both({ disputed: 5, won: 15, failed: 20 }[which]!))
  },
)

test('503: a report whose connection dies, or that finds no database, counts when it is sent again', async () => {
  const { send, pay, balance, db, id } = await createShop()
  await send(pay())
  const event = disputed('created')
  const died = await transact(db, async (tx) => {
    await sql`select from credit_account where organization_id = ${id} for update`.execute(tx)
    const answer = send(event)
    const findWaiting = async () => {
      const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
      return rows[0]?.pid
    }
    await expect.poll(findWaiting, { timeout: 20_000 }).toBeDefined()
    await sql`select pg_terminate_backend(${await findWaiting()})`.execute(db)
    return answer
  })
  expect(died.status).toBe(503)
  expect(await balance()).toEqual(both(20))

  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(db)
  const { name } = rows[0]!
  const server = connectServer()
  const allow = (isAllowed: boolean) =>
    sql`alter database ${sql.id(name)} with allow_connections ${sql.raw(String(isAllowed))}`.execute(
      server,
    )
  try {
    await allow(false)
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`.execute(
      server,
    )
    expect((await send(event)).status).toBe(503)
  } finally {
    await allow(true)
    await server.destroy()
  }
  await expect.poll(async () => (await send(event)).status, { timeout: 20_000 }).toBe(200)
  expect(await send(event)).toMatchObject({ outcome: 'duplicate' })
  expect(await balance()).toEqual(both(0))
})

test('a dispute that ends after its events were removed still counts once; one without a payment is named', async () => {
  const { send, pay, balance, db, problem, house } = await createShop()
  await send(pay())
  await send(disputed('created'))
  const stray = { id: 'dp_2', charge: 'ch_2', payment_intent: 'pi_never' }
  expect(await send(disputed('created', stray))).toMatchObject({ outcome: 'waiting' })
  const inAnHour = new Date(Date.now() + 3_600_000)
  expect(await sweepPaymentEvents(house, inAnHour, 10)).toBe(3)
  expect(problem.mock.calls.map(([, error]) => (error as Error).message)).toEqual([
    expect.stringContaining('charge.dispute.created evt_'),
    'the refund or dispute of ch_2',
  ])
  const left = await db.selectFrom('payment_dispute').select('id').execute()
  expect(left).toEqual([{ id: 'dp_1' }])
  await send(disputed('created'))
  expect(await balance()).toEqual(both(0))
  await send(disputed('closed', { status: 'won' }, 1))
  expect(await balance()).toEqual(both(20))
})

test('refunds of the previous release, which runs beside this one, are neither undone nor taken twice', async () => {
  const { send, pay, balance, db, house, id } = await createShop()
  await send(pay())
  // It stores the largest sum of refunds and what of it is posted, and no report.
  await sql`insert into payment_refund (charge, payment_intent, micro_usd, posted_micro_usd, reported_at)
    values ('ch_1', 'pi_1', ${usd(5)}, ${usd(5)}, now())`.execute(db)
  const refund = { id: `ch_1:${usd(5)}`, paymentId: 'pi_1', amount: BigInt(usd(5)) }
  await refundPayment(id, refund, { ...house, by: stripeActor('req_1') })
  await send(disputed('created', { amount: 100 }))
  expect(await balance()).toEqual(both(14))
  await send(refunded(500))
  expect(await balance()).toEqual(both(14))
  await send(refundFailed(500))
  expect(await balance()).toEqual(both(19))
})

test('422: a dispute that cannot be understood is sent again, not swallowed', async () => {
  const { send, events } = await createShop()
  for (const change of [{ amount: '2000' }, { amount: -1 }, { charge: 7 }, { status: null }]) {
    expect((await send(disputed('created', change))).status, JSON.stringify(change)).toBe(422)
  }
  expect((await send(refundFailed(5, { id: 're_\u0000' }))).status).toBe(422)
  expect(await events()).toEqual([])
})
