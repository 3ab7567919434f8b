import { sql } from 'kysely'

import type { PaymentEventState } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'

import type { Effect, PaymentEvent } from './read-event.ts'

/**
 * Lets one event be applied at a time, in all processes: two events may concern the same customer, invoice or
 * payment. Events are few, and each takes milliseconds.
 */
export async function lockEvents(tx: Tx) {
  await sql`select pg_advisory_xact_lock(hashtextextended('gatehouse_payment_event', 0))`.execute(
    tx,
  )
}

/** False if the event was received before. */
export async function insertEvent(tx: Tx, event: PaymentEvent, receivedAt: Date): Promise<boolean> {
  const { id, type, customer, effect } = event
  const charge = 'charge' in effect ? effect.charge : null
  const row = await tx
    .insertInto('payment_event')
    .values({
      id,
      type,
      customer,
      charge,
      state: 'waiting',
      effect: JSON.stringify(effect),
      created_at: event.createdAt,
      received_at: receivedAt,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

type EventResult = { state: PaymentEventState; organizationId: string | null }

export async function setEventState(tx: Tx, id: string, { state, organizationId }: EventResult) {
  await tx
    .updateTable('payment_event')
    // The organization of a refund or dispute comes from its payment and is set already.
    .set({ state, organization_id: sql`coalesce(organization_id, ${organizationId})` })
    .where('id', '=', id)
    .execute()
}

/** Events that wait until their customer is known, oldest first. Refunds and disputes wait for their payment instead. */
export async function findWaitingEvents(tx: Tx, customer: string, limit: number) {
  const rows = await tx
    .selectFrom('payment_event')
    .select(['id', 'type', 'created_at', 'effect'])
    .where('customer', '=', customer)
    .where('state', '=', 'waiting')
    .where('charge', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id, type, created_at, effect }) => ({
    id,
    type,
    createdAt: created_at,
    customer,
    namedOrganization: null,
    effect: effect as Effect,
  }))
}

export async function findCustomerOrganization(
  db: Db,
  customer: string,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('payment_customer')
    .select('organization_id')
    .where('customer', '=', customer)
    .executeTakeFirst()
  return row?.organization_id
}

/** False if the customer is known already: its organization never changes, so payments cannot move. */
export async function insertCustomer(tx: Tx, customer: string, organizationId: string) {
  const row = await tx
    .insertInto('payment_customer')
    .values({ customer, organization_id: organizationId })
    .onConflict((conflict) => conflict.column('customer').doNothing())
    .returning('customer')
    .executeTakeFirst()
  return row !== undefined
}

/** Removes a bounded number of old events, and of old charges whose payment was never reported. */
export async function removeOldEvents(tx: Tx, before: Date, limit: number) {
  const events = await sql<{ id: string; type: string; state: PaymentEventState }>`
    delete from payment_event where id in (
      select id from payment_event where received_at < ${before} order by received_at limit ${limit}
    ) returning id, type, state`.execute(tx)
  const charges = await sql<{ charge: string }>`
    delete from payment_refund where charge in (
      select charge from payment_refund
      where not is_counted and posted_micro_usd = 0 and reported_at < ${before}
      order by reported_at limit ${limit}
    ) and not is_counted returning charge`.execute(tx)
  return { events: events.rows, charges: charges.rows }
}
