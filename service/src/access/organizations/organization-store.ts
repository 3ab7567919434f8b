import type { Selectable } from 'kysely'

import type { Organization } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'

export type OrganizationRow = Selectable<Organization>

export async function insertOrganization(
  tx: Tx,
  { id, name, createdAt }: { id: string; name: string; createdAt: Date },
): Promise<OrganizationRow> {
  return tx
    .insertInto('organization')
    .values({ id, name, created_at: createdAt })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Holds the organization's row until the transaction ends: counts taken meanwhile stay true. */
export async function lockOrganization(tx: Tx, id: string): Promise<OrganizationRow | undefined> {
  return (
    tx
      .selectFrom('organization')
      .selectAll()
      .where('id', '=', id)
      // Weaker than `for update`: rows that refer to the organization can still be inserted.
      .forNoKeyUpdate()
      .executeTakeFirst()
  )
}

export async function setOrganizationStatus(
  tx: Tx,
  id: string,
  status: OrganizationRow['status'],
): Promise<OrganizationRow | undefined> {
  return tx
    .updateTable('organization')
    .set({ status })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}

export async function listOrganizations(db: Db, page: Page): Promise<OrganizationRow[]> {
  return db
    .selectFrom('organization')
    .selectAll()
    .where(isAfter(page))
    .orderBy('created_at', page.order)
    .orderBy('id', page.order)
    .limit(page.limit + 1)
    .execute()
}

export async function findOrganizationPosition(db: Db, id: string): Promise<Position | undefined> {
  return db
    .selectFrom('organization')
    .select(['id', 'created_at'])
    .where('id', '=', id)
    .executeTakeFirst()
}

export async function setOrganizationPlan(
  tx: Tx,
  id: string,
  plan: OrganizationRow['plan'],
): Promise<OrganizationRow> {
  return tx
    .updateTable('organization')
    .set({ plan })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function findPayment(tx: Tx, organizationId: string, id: string) {
  return tx
    .selectFrom('payment')
    .select(['micro_usd', 'recorded_at'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
}

type NewPayment = { organizationId: string; id: string; microUsd: number; recordedAt: Date }

/** Notes the payment and adds it to what the organization has paid in all. */
export async function insertPayment(
  tx: Tx,
  { organizationId, id, microUsd, recordedAt }: NewPayment,
): Promise<OrganizationRow> {
  await tx
    .insertInto('payment')
    .values({ organization_id: organizationId, id, micro_usd: microUsd, recorded_at: recordedAt })
    .execute()
  return tx
    .updateTable('organization')
    .set(({ eb }) => ({ paid_micro_usd: eb('paid_micro_usd', '+', String(microUsd)) }))
    .where('id', '=', organizationId)
    .returningAll()
    .executeTakeFirstOrThrow()
}
