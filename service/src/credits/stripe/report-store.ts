import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'

import type { Effect } from './read-event.ts'

export async function findReference(tx: Tx, references: readonly (string | null)[]) {
  const given = references.filter((reference) => reference !== null)
  if (given.length === 0) return undefined
  return tx
    .selectFrom('payment_reference')
    .select(['reference', 'organization_id as organizationId'])
    .where('reference', 'in', given)
    .orderBy('reference')
    .executeTakeFirst()
}

/** Payments with these ids, of any organization. The limit suffices to see whether there is more than one. */
export async function findRecordedPayments(tx: Tx, references: readonly (string | null)[]) {
  const given = references.filter((reference) => reference !== null)
  if (given.length === 0) return []
  return tx
    .selectFrom('payment')
    .select(['id as reference', 'organization_id as organizationId'])
    .where('id', 'in', given)
    .orderBy('id')
    .limit(1 + given.length)
    .execute()
}

export async function insertReference(tx: Tx, reference: string, organizationId: string) {
  await tx
    .insertInto('payment_reference')
    .values({ reference, organization_id: organizationId })
    .execute()
}

/** All payments that are known by one of these ids. */
export async function listReferences(tx: Tx, references: readonly string[]) {
  return tx
    .selectFrom('payment_reference')
    .select(['reference', 'organization_id as organizationId'])
    .where('reference', 'in', references)
    .orderBy('reference')
    .execute()
}

/** What was charged for a payment, tax and shipping included; undefined if Stripe has not said. */
export async function findCharged(tx: Tx, reference: string): Promise<bigint | undefined> {
  const row = await tx
    .selectFrom('payment_reference')
    .select('charged_micro_usd')
    .where('reference', '=', reference)
    .executeTakeFirst()
  const charged = row?.charged_micro_usd ?? undefined
  return charged === undefined ? undefined : BigInt(charged)
}

export async function setCharged(tx: Tx, reference: string, chargedMicroUsd: number) {
  await tx
    .updateTable('payment_reference')
    .set({ charged_micro_usd: chargedMicroUsd })
    .where('reference', '=', reference)
    .execute()
}

type ReportedSubscription = Extract<Effect, { kind: 'subscription' }> & {
  organizationId: string
  asOf: Date
}

/** Keeps the newest report; an end counts as the newest. */
export async function saveSubscription(tx: Tx, reported: ReportedSubscription) {
  const { subscription, organizationId, prices, isActive, isEnded, asOf, tie } = reported
  await sql`
    insert into payment_subscription as known
      (id, organization_id, prices, is_active, is_ended, as_of, tie)
    values (${subscription}, ${organizationId}, ${prices}, ${isActive}, ${isEnded}, ${asOf}, ${tie})
    on conflict (id) do update set organization_id = excluded.organization_id,
      prices = excluded.prices, is_active = excluded.is_active, is_ended = excluded.is_ended,
      as_of = excluded.as_of, tie = excluded.tie
    where (known.is_ended, known.as_of, known.tie) < (excluded.is_ended, excluded.as_of, excluded.tie)
  `.execute(tx)
}

export async function findSubscribedOrganization(
  tx: Tx,
  subscription: string,
): Promise<string | undefined> {
  const row = await tx
    .selectFrom('payment_subscription')
    .select('organization_id')
    .where('id', '=', subscription)
    .executeTakeFirst()
  return row?.organization_id
}

/** The prices of all active subscriptions. */
export async function listActivePrices(tx: Tx, organizationId: string): Promise<string[]> {
  const rows = await tx
    .selectFrom('payment_subscription')
    .select('prices')
    .where('organization_id', '=', organizationId)
    .where('is_active', '=', true)
    .execute()
  return rows.flatMap(({ prices }) => prices)
}
