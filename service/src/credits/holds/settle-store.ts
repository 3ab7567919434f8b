import { type RawBuilder, sql } from 'kysely'

import { callKey, type Settlement, type SettleResult } from '#credits/settlement.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { lockAccounts, lockedAccountsOf } from './account-store.ts'
import { recordedCharges, settlementRows } from './charge-store.ts'

type Row = { organization_id: string; id: string; charge: string; posted: string }

/**
 * Turns holds into charges. A call is charged what it cost, at most its hold; the rest is written off, because the caller
 * could not know of it. If a call has a ledger entry already, its hold is only released: the amount of the hold can be
 * spent again, and nothing is charged. account-store.ts explains why accounts are read through `locked_accounts` only,
 * and why `overdraft` and `is_metered` are set although they do not change.
 */
const settleStatement = (settlements: readonly Settlement[]) => sql<Row>`
  with ${settlementRows(settlements)}, ${lockedAccountsOf('settlements')}, released_holds as (
    delete from credit_hold hold using settlements join locked_accounts using (organization_id)
    where hold.organization_id = settlements.organization_id and hold.id = settlements.id
    returning hold.organization_id, hold.id, hold.amount as held, settlements.amount,
      settlements.meta
  ), charges as (
    select organization_id, id, amount, meta, least(amount, held) as charge
    from released_holds released
    where not exists (select from ledger_entry entry
      where entry.organization_id = released.organization_id
        and entry.id in (released.id, released.id || ':late'))
  ), ${recordedCharges('usage')}, updated_accounts as (
    update credit_account account set posted = locked.posted - sums.charge,
      used = locked.used + sums.charge, held = locked.held - sums.held, overdraft = locked.overdraft,
      is_metered = locked.is_metered
    from (
      select organization_id, sum(held) as held, coalesce(sum(charge), 0) as charge
      from released_holds left join charges using (organization_id, id) group by organization_id
    ) sums join locked_accounts locked using (organization_id)
    where account.organization_id = sums.organization_id
    returning account.organization_id, account.posted
  )
  select organization_id, id, charge, posted
  from charges join updated_accounts using (organization_id)`

/**
 * Charges for calls without a hold (it was swept, or never made), as far as the balance goes; in a metered
 * account, what the hold would have covered. A call that was charged before keeps that charge. Runs after `lockAccounts`.
 */
const lateStatement = (settlements: readonly Settlement[]) => sql<Row>`
  with ${settlementRows(settlements)}, earlier_charges as (
    select settlements.organization_id, settlements.id, entry.amount as charge
    from settlements join ledger_entry entry
      on entry.organization_id = settlements.organization_id
        and entry.id in (settlements.id, settlements.id || ':late')
        and entry.kind in ('usage', 'late_usage')
  ), swept_holds as (
    select organization_id, id, (entry.meta->>'held')::bigint as swept_amount
    from settlements join ledger_entry entry using (organization_id, id)
    where entry.kind = 'void_unknown'
  ), charges as (
    select organization_id, id, amount, meta,
      case when is_metered then least(amount, coalesce(swept_amount, amount))
      else greatest(0, least(amount, posted - held + overdraft + amount - sum(amount)
        over (partition by organization_id order by ordinality))) end as charge
    from settlements join credit_account using (organization_id)
    left join swept_holds using (organization_id, id)
    where not exists (select from earlier_charges earlier
      where earlier.organization_id = settlements.organization_id and earlier.id = settlements.id)
  ), ${recordedCharges('late_usage')}, sums as (
    select organization_id, sum(charge) as charge from charges group by organization_id
  ), updated_accounts as (
    update credit_account account
    set posted = posted - sums.charge, used = used + sums.charge
    from sums where account.organization_id = sums.organization_id
  )
  select organization_id, settled.id, settled.charge,
    posted - coalesce(sums.charge, 0) as posted
  from (
    select * from earlier_charges union all select organization_id, id, charge from charges
  ) settled
  join credit_account using (organization_id) left join sums using (organization_id)`

/** Results by `callKey`; none where there is no account. No call may be in `settlements` twice. */
export async function settleHolds(
  db: Db,
  settlements: readonly Settlement[],
): Promise<Map<string, SettleResult>> {
  const settled = await execute(settleStatement(settlements), db)
  const late = settlements.filter((settlement) => !settled.has(callKey(settlement)))
  if (late.length === 0) return settled
  return new Map([...settled, ...(await transact(db, (tx) => settleLate(tx, late)))])
}

async function settleLate(tx: Tx, settlements: readonly Settlement[]) {
  const organizationIds = settlements.map(({ organizationId }) => organizationId)
  await lockAccounts(tx, organizationIds)
  return execute(lateStatement(settlements), tx)
}

async function execute(statement: RawBuilder<Row>, db: Db): Promise<Map<string, SettleResult>> {
  const { rows } = await statement.execute(db)
  return new Map(
    rows.map(({ organization_id: organizationId, id, charge, posted }) => [
      callKey({ organizationId, id }),
      { charged: BigInt(charge), posted: BigInt(posted) },
    ]),
  )
}
