import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'

import type { Hold } from './credit-store.ts'

/**
 * `again`: an earlier hold of the same statement was refused, or the hold was made by somebody else just
 * now, so this one is undecided. `differs`: the id is held with another amount.
 */
type Verdict = { verdict: 'held' | 'refused' | 'again' | 'differs'; available: bigint }

type Row = { organization_id: string; id: string; verdict: Verdict['verdict']; available: string }

/**
 * Holds in their order as many as fit; whoever comes after the first that does not fit tries again. New
 * values come from the locked row: constraints would be judged against the statement's snapshot otherwise.
 */
const reserveStatement = (holds: string) => sql<Row>`
  with asked as (
    select * from rows from (jsonb_to_recordset(${holds}::jsonb) as
      (organization_id text, id text, amount bigint, expires_ms double precision, meta jsonb)
    ) with ordinality
  ), locked as materialized (
    select organization_id, posted, used, held, overdraft, posted - held + overdraft as room
    from credit_account where organization_id in (select organization_id from asked)
    order by organization_id for update
  ), run as (
    select asked.*, posted - held as available, room, known.amount as known_amount,
      sum(case when known.id is null then asked.amount else 0 end)
        over (partition by asked.organization_id order by asked.ordinality) as total
    from asked join locked using (organization_id)
    left join credit_hold known using (organization_id, id)
  ), made as (
    insert into credit_hold (organization_id, id, amount, expires_at, meta)
    select organization_id, id, amount,
      clock_timestamp() + make_interval(secs => expires_ms / 1000), meta
    from run where known_amount is null and total <= room
    on conflict do nothing returning organization_id, id, amount
  ), sums as (
    select organization_id, sum(amount) as amount from made group by organization_id
  ), moved as (
    update credit_account account set posted = locked.posted, used = locked.used,
      held = locked.held + sums.amount, overdraft = locked.overdraft
    from sums join locked using (organization_id)
    where account.organization_id = sums.organization_id
  )
  select organization_id, id,
    case when made.id is not null or known_amount = run.amount then 'held'
      when known_amount is not null then 'differs'
      when run.amount > room or (total > room and total - run.amount <= room) then 'refused'
      else 'again' end as verdict,
    available - coalesce(sums.amount, 0) as available
  from run
  left join made using (organization_id, id)
  left join sums using (organization_id)`

/** Verdicts by place; whoever has no account gets none. No id may stand twice. */
export async function reserveHolds(db: Db, holds: readonly Hold[]): Promise<Map<string, Verdict>> {
  const asked = holds.map(({ organizationId, id, amount, expiresInMs, meta }) => ({
    ...{ organization_id: organizationId, id, meta },
    ...{ amount: String(amount), expires_ms: expiresInMs },
  }))
  const { rows } = await reserveStatement(JSON.stringify(asked)).execute(db)
  return new Map(
    rows.map(({ organization_id: organizationId, id, verdict, available }) => [
      placeOf({ organizationId, id }),
      { verdict, available: BigInt(available) },
    ]),
  )
}

/** Request ids are unique within their organization. */
export const placeOf = ({ organizationId, id }: Pick<Hold, 'organizationId' | 'id'>) =>
  `${organizationId} ${id}`
