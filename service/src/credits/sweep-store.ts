import { sql } from 'kysely'

import { callEvent, type Event } from '#audit/event.ts'
import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { tellEvents } from './ledger-store.ts'
import type { HoldMeta } from './usage-meta.ts'

/**
 * Accounts before holds, as everywhere. An account that somebody else has locked is left for the next round:
 * whoever waits for one while holding others makes everybody wait. Nobody waits, so any order will do.
 */
const lockStatement = (limit: number) => sql<{ organization_id: string }>`
  select organization_id from credit_hold join credit_account account using (organization_id)
  where expires_at < now() order by expires_at limit ${limit} for update of account skip locked`

type Row = { organization_id: string; id: string; meta: HoldMeta; at: Date }

/** Sees all that was settled before the lock: what is still held now and has expired, nobody will settle in time. */
const voidStatement = (organizationIds: readonly string[], limit: number) => sql<Row>`
  with expired as (
    select organization_id, id from credit_hold
    where organization_id = any(${organizationIds}::text[]) and expires_at < now()
    order by expires_at limit ${limit}
  ), gone as (
    delete from credit_hold hold using expired
    where hold.organization_id = expired.organization_id and hold.id = expired.id
    returning hold.organization_id, hold.id, hold.amount, hold.meta
  ), entries as (
    insert into ledger_entry (organization_id, id, debit, credit, amount, kind, project_id, meta)
    select organization_id, id, 'wallet', 'revenue', 0, 'void_unknown', meta->>'project_id', meta
    from gone on conflict do nothing returning organization_id, id, meta, at
  ), moved as (
    update credit_account account set held = held - sums.amount
    from (select organization_id, sum(amount) as amount from gone group by organization_id) sums
    where account.organization_id = sums.organization_id
  )
  select * from entries`

/**
 * Lets go of holds whose calls have never been settled, in the customer's favour, and says so; returns how
 * many calls that were.
 */
export const sweepHolds = (db: Db, limit = 100): Promise<number> =>
  transact(db, async (tx) => {
    const { rows: locked } = await lockStatement(limit).execute(tx)
    if (locked.length === 0) return 0
    const organizationIds = [...new Set(locked.map(({ organization_id }) => organization_id))]
    const { rows } = await voidStatement(organizationIds, limit).execute(tx)
    await tellEvents(tx, rows.map(eventOf))
    return rows.length
  })

function eventOf({ organization_id, id, meta, at }: Row): Event {
  const report = {
    ...{ organizationId: organization_id, requestId: id, projectId: meta.project_id },
    ...{ actor: meta.key_id, model: meta.model, target: 'unknown' },
    ...{ outcome: 'unknown' as const, usage: { ...meta, credits: 0 } },
  }
  return callEvent(report, at)
}
