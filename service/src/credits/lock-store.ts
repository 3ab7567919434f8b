import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

/** Runs alone before the next statement, which then sees all that was done under the lock before. */
export async function lockAccounts(tx: Tx, organizationIds: readonly string[]) {
  await sql`
    select from credit_account where organization_id = any(${organizationIds}::text[])
    order by organization_id for update`.execute(tx)
}

/** Those whose account nobody has locked. Several may ask at once without taking each other for the one. */
export async function findFreeAccounts(db: Db, organizationIds: readonly string[]) {
  const { rows } = await sql<{ organization_id: string }>`
    select organization_id from credit_account
    where organization_id = any(${organizationIds}::text[]) for share skip locked`.execute(db)
  return rows.map(({ organization_id }) => organization_id)
}
