import { sql } from 'kysely'

import { insertEvents } from '#audit/event-store.ts'
import { buildCallEvent, type Event } from '#audit/event.ts'
import type { HoldMeta } from '#credits/usage-meta.ts'
import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { accountsWithoutReleasedHolds } from './account-store.ts'

/**
 * Locks the accounts of expired holds. Accounts that are locked already are left for the next sweep: a sweep
 * that waited for one account would keep all the others locked meanwhile. It never waits, so the order of
 * the locks does not matter.
 */
const lockStatement = (limit: number) => sql<{ organization_id: string }>`
  select organization_id from credit_hold join credit_account account using (organization_id)
  where expires_at < now() order by expires_at limit ${limit} for update of account skip locked`

type Row = {
  organization_id: string
  id: string
  /** Without the caller, who is in the event only. */
  meta: HoldMeta
  caller: HoldMeta['caller'] | null
  at: Date
}

/** Runs after the lock and so sees every settlement before it: a hold that is still there was not settled. */
const voidStatement = (organizationIds: readonly string[], limit: number) => sql<Row>`
  with expired_holds as (
    select organization_id, id from credit_hold
    where organization_id = any(${organizationIds}::text[]) and expires_at < now()
    order by expires_at limit ${limit}
  ), released_holds as (
    delete from credit_hold hold using expired_holds expired
    where hold.organization_id = expired.organization_id and hold.id = expired.id
    returning hold.organization_id, hold.id, hold.amount, hold.meta
  ), new_entries as (
    insert into ledger_entry (organization_id, id, debit, credit, amount, kind, project_id, meta)
    select organization_id, id, 'wallet', 'revenue', 0, 'void_unknown', meta->>'project_id',
      meta - 'caller' || jsonb_build_object('held', amount)
    from released_holds on conflict do nothing
    returning organization_id, id, meta - 'held' as meta, at
  ), ${accountsWithoutReleasedHolds}
  select entry.*, hold.meta->'caller' as caller
  from new_entries entry join released_holds hold using (organization_id, id)`

/**
 * Releases expired holds, whose calls were never settled. The calls are not charged; each gets a
 * `void_unknown` entry, which keeps the amount of the hold, and an event. Returns how many there were.
 */
export const sweepHolds = (db: Db, limit = 100): Promise<number> =>
  transact(db, async (tx) => {
    const { rows: locked } = await lockStatement(limit).execute(tx)
    if (locked.length === 0) return 0
    const organizationIds = [...new Set(locked.map(({ organization_id }) => organization_id))]
    const { rows } = await voidStatement(organizationIds, limit).execute(tx)
    await insertEvents(tx, rows.map(toEvent))
    return rows.length
  })

function toEvent({ organization_id, id, meta: { quotas, ...meta }, caller, at }: Row): Event {
  const report = {
    organizationId: organization_id,
    requestId: id,
    projectId: meta.project_id,
    projectLabel: caller?.project_label,
    actor: meta.key_id,
    actorType: caller?.type,
    userId: caller?.user_id,
    model: meta.model,
    target: 'unknown',
    outcome: 'unknown' as const,
    usage: { ...meta, credits: 0 },
    policies: null,
    quotas: quotas && { ...quotas, tokens: 0, credits: 0 },
  }
  return buildCallEvent(report, at)
}
