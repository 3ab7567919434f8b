import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

// Every change of `credit_account` locks the rows first, in the order of their ids, so that two transactions
// never wait for each other. There are two ways:
//
// - Within the statement that makes the change (holds, settlements): the CTE `locked_accounts` below. The
//   statement's snapshot is older than the lock if it had to wait for it; only the rows that `for update`
//   returns are current. So all new values are computed from `locked_accounts`, and every column of the
//   account's CHECK constraints is set from there, even to the value it has: PostgreSQL checks constraints
//   on the snapshot's version of the row before it turns to the current one, so near the limit
//   `set held = held + 5` would fail on a balance that is long outdated.
// - In a statement of its own, before the change (late settlements, releases): `lockAccounts`. The change's
//   snapshot is then newer than the lock, and the change may read and update every table as usual.

/** The CTE `locked_accounts`: the accounts of the organizations in `source`, another CTE. */
export const lockedAccountsOf = (source: 'requested_holds' | 'settlements') => sql`
  locked_accounts as materialized (
    select organization_id, posted, used, held, overdraft, is_metered from credit_account
    where organization_id in (select organization_id from ${sql.ref(source)})
    order by organization_id for update
  )`

export async function lockAccounts(tx: Tx, organizationIds: readonly string[]) {
  await sql`
    select from credit_account where organization_id = any(${organizationIds}::text[])
    order by organization_id for update`.execute(tx)
}

/** The CTE `updated_accounts`, for statements that delete holds as `released_holds` after `lockAccounts`. */
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
