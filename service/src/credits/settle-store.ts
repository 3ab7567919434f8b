import { type RawBuilder, sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import type { Settled, Settlement } from './credit-store.ts'
import { askedSettlements, summedByDay, told } from './ledger-store.ts'
import { placeOf } from './reserve-store.ts'

type Row = { organization_id: string; id: string; charge: string; available: string }

/**
 * Turns holds into charges. What a call cost beyond its hold is charged as far as the balance goes, in
 * order; the rest is written off. New values come from the locked row, as in every such statement. A hold
 * whose call has an entry already is only let go.
 */
const settleStatement = (settlements: readonly Settlement[]) => sql<Row>`
  with ${askedSettlements(settlements)}, locked as materialized (
    select organization_id, posted, used, held, overdraft from credit_account
    where organization_id in (select organization_id from asked)
    order by organization_id for update
  ), gone as (
    delete from credit_hold hold using asked join locked using (organization_id)
    where hold.organization_id = asked.organization_id and hold.id = asked.id
    returning hold.organization_id, hold.id, hold.amount as held, asked.amount, asked.meta, ordinality
  ), fresh as (
    select *, least(amount, held) as base, greatest(amount - held, 0) as beyond from gone
    where not exists (select from ledger_entry entry
      where entry.organization_id = gone.organization_id
        and entry.id in (gone.id, gone.id || ':late'))
  ), rooms as (
    select organization_id, posted + overdraft - locked.held + sum(gone.held)
      - coalesce(sum(base), 0) as room
    from locked join gone using (organization_id) left join fresh using (organization_id, id)
    group by organization_id, posted, overdraft, locked.held
  ), charged as (
    select fresh.organization_id, fresh.id, amount, meta,
      base + greatest(0, least(beyond, room + beyond - sum(beyond)
        over (partition by fresh.organization_id order by ordinality))) as charge
    from fresh join rooms using (organization_id)
  ), entries as (
    insert into ledger_entry
      (organization_id, id, debit, credit, amount, kind, project_id, meta)
    select organization_id, id, 'wallet'::ledger_account, 'revenue'::ledger_account, charge,
      'usage'::ledger_kind, meta->>'project_id', meta from charged
    union all
    select organization_id, id || ':writeoff', 'writeoff', 'revenue', amount - charge,
      'writeoff', meta->>'project_id', meta from charged where amount > charge
    returning organization_id, kind, amount, project_id, meta, at
  ), ${summedByDay}, ${told}, moved as (
    update credit_account account set posted = locked.posted - sums.charge,
      used = locked.used + sums.charge, held = locked.held - sums.held, overdraft = locked.overdraft
    from (
      select organization_id, sum(gone.held) as held, coalesce(sum(charge), 0) as charge
      from gone left join charged using (organization_id, id) group by organization_id
    ) sums join locked using (organization_id)
    where account.organization_id = sums.organization_id
    returning account.organization_id, account.posted - account.held as available
  )
  select organization_id, id, charge, available from charged join moved using (organization_id)`

/** Runs alone before the next statement, which then sees all that was done under the lock before. */
const lockStatement = (organizationIds: readonly string[]) => sql`
  select from credit_account where organization_id = any(${organizationIds}::text[])
  order by organization_id for update`

/**
 * Charges for calls that have no hold any more, as far as the balance goes: it was swept, or never there.
 * A call that was charged before keeps what it was charged.
 */
const lateStatement = (settlements: readonly Settlement[]) => sql<Row>`
  with ${askedSettlements(settlements)}, before as (
    select asked.organization_id, asked.id, entry.amount as charge
    from asked join ledger_entry entry on entry.organization_id = asked.organization_id
      and entry.id in (asked.id, asked.id || ':late') and entry.kind in ('usage', 'late_usage')
  ), charged as (
    select organization_id, id, amount, meta, greatest(0, least(amount,
      posted - held + overdraft + amount - sum(amount)
        over (partition by organization_id order by ordinality))) as charge
    from asked join credit_account using (organization_id)
    where not exists (select from before
      where before.organization_id = asked.organization_id and before.id = asked.id)
  ), entries as (
    insert into ledger_entry
      (organization_id, id, debit, credit, amount, kind, project_id, meta)
    select organization_id, id || ':late', 'wallet'::ledger_account, 'revenue'::ledger_account,
      charge, 'late_usage'::ledger_kind, meta->>'project_id', meta from charged
    union all
    select organization_id, id || ':late:writeoff', 'writeoff', 'revenue', amount - charge,
      'writeoff', meta->>'project_id', meta from charged where amount > charge
    returning organization_id, kind, amount, project_id, meta, at
  ), ${summedByDay}, ${told}, sums as (
    select organization_id, sum(charge) as charge from charged group by organization_id
  ), moved as (
    update credit_account account
    set posted = posted - sums.charge, used = used + sums.charge
    from sums where account.organization_id = sums.organization_id
  )
  select organization_id, done.id, done.charge,
    posted - held - coalesce(sums.charge, 0) as available
  from (select * from before union all select organization_id, id, charge from charged) done
  join credit_account using (organization_id) left join sums using (organization_id)`

/** What was charged, by place; nothing where there is no account. No id may stand twice. */
export async function settleHolds(
  db: Db,
  settlements: readonly Settlement[],
): Promise<Map<string, Settled>> {
  const settled = await read(settleStatement(settlements), db)
  const late = settlements.filter((each) => !settled.has(placeOf(each)))
  if (late.length === 0) return settled
  return new Map([...settled, ...(await transact(db, (tx) => settleLate(tx, late)))])
}

async function settleLate(tx: Tx, settlements: readonly Settlement[]) {
  await lockStatement(settlements.map(({ organizationId }) => organizationId)).execute(tx)
  return read(lateStatement(settlements), tx)
}

async function read(statement: RawBuilder<Row>, db: Db): Promise<Map<string, Settled>> {
  const { rows } = await statement.execute(db)
  return new Map(
    rows.map(({ organization_id: organizationId, id, charge, available }) => [
      placeOf({ organizationId, id }),
      { charged: BigInt(charge), available: BigInt(available) },
    ]),
  )
}
