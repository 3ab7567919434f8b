import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'

/** The other ids of a payment: the invoice of a payment intent, the payment intents of an invoice. */
export async function findAliases(tx: Tx, reference: string): Promise<string[]> {
  const { rows } = await sql<{ alias: string }>`
    select invoice as alias from payment_link where payment_intent = ${reference}
    union select payment_intent from payment_link where invoice = ${reference}
    order by alias limit 20`.execute(tx)
  return rows.map(({ alias }) => alias)
}

type PaymentLink = { paymentIntent: string; invoice: string }

export async function insertLink(tx: Tx, { paymentIntent, invoice }: PaymentLink) {
  await tx
    .insertInto('payment_link')
    .values({ payment_intent: paymentIntent, invoice })
    .onConflict((conflict) => conflict.column('payment_intent').doNothing())
    .execute()
}
