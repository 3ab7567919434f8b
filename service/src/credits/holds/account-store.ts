import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

// Every change of `credit_account` locks the rows first, in the order of their ids, so that two transactions never wait
// for each other, and computes the new values from the locked rows. The calls of models do so in the functions
// `move_credits` and `move_credits_by_sets` (migrations/0014 and 0031), which read and change them in statements after the
// lock.

/** The CTE `updated_accounts`, for statements that delete holds as `released_holds` after the lock. */
export const accountsWithoutReleasedHolds = sql`
  updated_accounts as (
    update credit_account account set held = held - released.amount
    from (
      select organization_id, sum(amount) as amount from released_holds group by organization_id
    ) released
    where account.organization_id = released.organization_id
  )`

/** A shared lock: processes that look at the same time do not find each other's. */
export async function findUnlockedAccounts(db: Db, organizationIds: readonly string[]) {
  const { rows } = await sql<{ organization_id: string }>`
    select organization_id from credit_account
    where organization_id = any(${organizationIds}::text[]) for share skip locked`.execute(db)
  return rows.map(({ organization_id }) => organization_id)
}

/**
 * In credits. `posted` is what was paid and granted, less what was used; `held` is a part of it. The last hold of a metered
 * account was made with BILLING=metered, so its balance may be below zero.
 */
export type Account = { posted: bigint; used: bigint; held: bigint; isMetered: boolean }

const accountColumns = ['posted', 'used', 'held', 'is_metered'] as const

/** Locks one account until the transaction ends, and reads it. */
export async function lockAccount(tx: Tx, organizationId: string): Promise<Account> {
  const row = await tx
    .selectFrom('credit_account')
    .select(accountColumns)
    .where('organization_id', '=', organizationId)
    .forUpdate()
    .executeTakeFirstOrThrow()
  return accountOf(row)
}

export async function findAccount(db: Db, organizationId: string): Promise<Account | undefined> {
  const row = await db
    .selectFrom('credit_account')
    .select(accountColumns)
    .where('organization_id', '=', organizationId)
    .executeTakeFirst()
  return row && accountOf(row)
}

type AccountRow = { posted: string; used: string; held: string; is_metered: boolean }

const accountOf = (row: AccountRow): Account => ({
  posted: BigInt(row.posted),
  used: BigInt(row.used),
  held: BigInt(row.held),
  isMetered: row.is_metered,
})

export async function setPosted(tx: Tx, organizationId: string, posted: bigint) {
  await tx
    .updateTable('credit_account')
    .set({ posted })
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow()
}

/** In credits. `total` is everything ever paid and granted; `posted` is what is left of it, held or not. */
export type Balance = { total: bigint; used: bigint; posted: bigint }

export async function readBalances(
  db: Db,
  organizationIds: readonly string[],
): Promise<Map<string, Balance>> {
  const rows = await db
    .selectFrom('credit_account')
    .select(['organization_id', 'posted', 'used'])
    .where('organization_id', '=', sql<string>`any(${organizationIds}::text[])`)
    .execute()
  return new Map(
    rows.map((row) => {
      const [posted, used] = [BigInt(row.posted), BigInt(row.used)]
      return [row.organization_id, { total: posted + used, used, posted }]
    }),
  )
}
