import type { Plan } from '@gatehouse/contract/limits'
import type { OrganizationSettings } from '@gatehouse/contract/organization/settings'
import type { Role } from '@gatehouse/contract/role'
import type { Selectable } from 'kysely'

import type { Organization } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'

export type OrganizationRow = Selectable<Organization>

export async function insertOrganization(
  tx: Tx,
  { id, name, plan, createdAt }: { id: string; name: string; plan: Plan; createdAt: Date },
): Promise<OrganizationRow> {
  return tx
    .insertInto('organization')
    .values({ id, name, plan, operator_plan: plan, created_at: createdAt })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Locks the organization's row until the transaction ends, so that counts taken after it stay true. */
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

export async function setOrganizationPlans(
  tx: Tx,
  id: string,
  plans: Pick<OrganizationRow, 'plan' | 'operator_plan' | 'subscribed_plan'>,
): Promise<OrganizationRow> {
  return tx
    .updateTable('organization')
    .set(plans)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Sets what the organization has paid in total, minus refunds. */
export async function setOrganizationPaid(
  tx: Tx,
  id: string,
  microUsd: bigint,
): Promise<OrganizationRow> {
  return tx
    .updateTable('organization')
    .set({ paid_micro_usd: microUsd })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function saveSettings(tx: Tx, settings: OrganizationSettings) {
  const { name, publish_requires_approval, default_key_expiry_seconds, labels } = settings
  await tx
    .updateTable('organization')
    .set({
      name,
      publish_requires_approval,
      default_key_expiry_seconds,
      labels: JSON.stringify(labels),
      settings_revision: settings.revision,
    })
    .where('id', '=', settings.id)
    .execute()
}

/** How long new keys work that are made without an expiry; null: until they are revoked. */
export async function findKeyExpiry(tx: Tx, id: string): Promise<number | null> {
  const row = await tx
    .selectFrom('organization')
    .select('default_key_expiry_seconds')
    .where('id', '=', id)
    .executeTakeFirst()
  return row?.default_key_expiry_seconds ?? null
}

export async function findOrganization(
  db: Db | Tx,
  id: string,
): Promise<OrganizationRow | undefined> {
  return db.selectFrom('organization').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Whether the organization asks for two persons. */
export async function asksForTwoPersons(db: Db | Tx, organizationId: string): Promise<boolean> {
  const row = await db
    .selectFrom('organization')
    .select('publish_requires_approval')
    .where('id', '=', organizationId)
    .executeTakeFirst()
  return row?.publish_requires_approval ?? false
}

/** How many active members have one of the roles. */
export async function countActiveMembers(
  tx: Tx,
  id: string,
  roles: readonly string[],
): Promise<number> {
  const { count } = await tx
    .selectFrom('member')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('organization_id', '=', id)
    .where('status', '=', 'active')
    .where('role', 'in', roles)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** The role that a member has at this moment; undefined for one who is not active, or is none. */
export async function findRoleNow(tx: Tx, id: string, memberId: string): Promise<Role | undefined> {
  const row = await tx
    .selectFrom('member')
    .select('role')
    .where('organization_id', '=', id)
    .where('id', '=', memberId)
    .where('status', '=', 'active')
    .$castTo<{ role: Role }>()
    .executeTakeFirst()
  return row?.role
}
