import { sql } from 'kysely'

import { callKey, type Hold } from '#credits/settlement.ts'
import type { Db } from '#platform/database.ts'

import { lockedAccountsOf } from './account-store.ts'

/**
 * `undecided`: an earlier hold of the same statement was refused, or another process has just made this
 * hold; the next statement decides. `other_amount`: the call is held already, with another amount.
 */
type HoldVerdict = {
  verdict: 'held' | 'refused' | 'undecided' | 'other_amount'
  available: bigint
  held: bigint
}

type Row = {
  organization_id: string
  id: string
  verdict: HoldVerdict['verdict']
  available: string
  held: string
}

/**
 * Makes the holds of each organization in their order, as long as their running total can be spent. The first
 * that does not fit is refused; those behind it might fit without it and are undecided. With BILLING=metered all of them
 * are made. An account becomes prepaid again only together with a hold that its balance covers, as its constraint demands.
 */
const reserveStatement = (holds: string, isMetered: boolean) => sql<Row>`
  with requested_holds as (
    select * from rows from (jsonb_to_recordset(${holds}::jsonb) as
      (organization_id text, id text, amount bigint, expires_ms double precision, meta jsonb)
    ) with ordinality
  ), ${lockedAccountsOf('requested_holds')}, candidates as (
    select requested.*, held, posted - held as available, posted - held + overdraft as spendable,
      existing.amount as existing_amount,
      sum(case when existing.id is null then requested.amount else 0 end)
        over (partition by requested.organization_id order by requested.ordinality) as running_total
    from requested_holds requested join locked_accounts using (organization_id)
    left join credit_hold existing using (organization_id, id)
  ), new_holds as (
    insert into credit_hold (organization_id, id, amount, expires_at, meta)
    select organization_id, id, amount,
      clock_timestamp() + make_interval(secs => expires_ms / 1000), meta
    from candidates where existing_amount is null and (${isMetered} or running_total <= spendable)
    on conflict do nothing returning organization_id, id, amount
  ), newly_held as (
    select organization_id, sum(amount) as amount from new_holds group by organization_id
  ), updated_accounts as (
    update credit_account account set posted = locked.posted, used = locked.used,
      held = locked.held + newly_held.amount, overdraft = locked.overdraft,
      is_metered = ${isMetered}
    from newly_held join locked_accounts locked using (organization_id)
    where account.organization_id = newly_held.organization_id
  )
  select organization_id, id,
    case when new_holds.id is not null or existing_amount = candidates.amount then 'held'
      when existing_amount is not null then 'other_amount'
      when not ${isMetered} and (candidates.amount > spendable
        or (running_total > spendable and running_total - candidates.amount <= spendable))
        then 'refused'
      else 'undecided' end as verdict,
    available - coalesce(newly_held.amount, 0) as available,
    held + coalesce(newly_held.amount, 0) as held
  from candidates
  left join new_holds using (organization_id, id)
  left join newly_held using (organization_id)`

/** Verdicts by `callKey`; none where there is no account. No call may be in `holds` twice. */
export async function reserveHolds(
  db: Db,
  holds: readonly Hold[],
  isMetered: boolean,
): Promise<Map<string, HoldVerdict>> {
  const records = holds.map(({ organizationId, id, amount, expiresInMs, meta }) => ({
    organization_id: organizationId,
    id,
    meta,
    amount: String(amount),
    expires_ms: expiresInMs,
  }))
  const { rows } = await reserveStatement(JSON.stringify(records), isMetered).execute(db)
  return new Map(
    rows.map(({ organization_id: organizationId, id, verdict, available, held }) => [
      callKey({ organizationId, id }),
      { verdict, available: BigInt(available), held: BigInt(held) },
    ]),
  )
}
