import { sql } from 'kysely'

import type { LedgerPosition } from '#credits/ledger-store.ts'
import type { LedgerAccount, LedgerKind } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'

/** All queries of `read` see the same snapshot, without locks, however long they take. */
export const withSnapshot = <T>(db: Db, read: (tx: Tx) => Promise<T>): Promise<T> =>
  db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute((tx) => read(tx))

export async function listOrganizationIds(db: Db, after: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('organization')
    .select('id')
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

export type StoredBalance = {
  posted: string
  used: string
  held: string
  paid: string
  /** The sum of the open holds, and how many of them should have been swept long ago. */
  open_holds: string
  overdue_holds: string
}

/** Undefined if the organization has no account, which is a difference too. */
export async function readStoredBalance(
  tx: Tx,
  organizationId: string,
): Promise<StoredBalance | undefined> {
  const { rows } = await sql<StoredBalance>`
    select posted, used, held, paid_micro_usd as paid, coalesce(holds.amount, 0)::text as open_holds,
      holds.overdue::text as overdue_holds
    from organization join credit_account on organization_id = organization.id,
      lateral (
        select sum(amount) as amount,
          count(*) filter (where expires_at < now() - interval '5 minutes') as overdue
        from credit_hold where credit_hold.organization_id = organization.id
      ) holds
    where organization.id = ${organizationId}`.execute(tx)
  return rows[0]
}

export type CheckedEntry = LedgerPosition & {
  id: string
  debit: LedgerAccount
  credit: LedgerAccount
  amount: string
  kind: LedgerKind
  project_id: string | null
  meta: unknown
  /** The part of the call's cost that was not charged. */
  written_off: string
}

export async function readEntries(
  tx: Tx,
  organizationId: string,
  after: LedgerPosition | undefined,
  limit: number,
): Promise<CheckedEntry[]> {
  const isAfter = after
    ? sql`and (entry.at, entry.seq) > (${after.at}, ${after.seq}::bigint)`
    : sql``
  const { rows } = await sql<CheckedEntry>`
    select entry.id, entry.seq, entry.at, entry.debit, entry.credit, entry.amount, entry.kind,
      entry.project_id, entry.meta, coalesce(writeoff.amount, 0)::text as written_off
    from ledger_entry entry left join ledger_entry writeoff
      on entry.kind in ('usage', 'late_usage') and writeoff.kind = 'writeoff'
        and writeoff.organization_id = entry.organization_id
        and writeoff.id = entry.id || ':writeoff'
    where entry.organization_id = ${organizationId} ${isAfter}
    order by entry.at, entry.seq limit ${limit}`.execute(tx)
  return rows
}

export type UsageDayRow = {
  day: string
  project_id: string
  key_id: string
  model: string
  requests: string
  input_tokens: string
  output_tokens: string
  credits: string
}

/** Days from `from` on and before `before`, without the calls that have no ledger entry because of BILLING=off. */
export async function readUsageDays(
  tx: Tx,
  organizationId: string,
  from: string,
  before: string,
): Promise<UsageDayRow[]> {
  const { rows } = await sql<UsageDayRow>`
    select day::text, project_id, key_id, model,
      (requests - unbilled_requests)::text as requests,
      (input_tokens - unbilled_input_tokens)::text as input_tokens,
      (output_tokens - unbilled_output_tokens)::text as output_tokens,
      (credits - unbilled_credits)::text as credits
    from usage_day where organization_id = ${organizationId}
      and day >= ${from}::date and day < ${before}::date
      and (requests, input_tokens, output_tokens, credits) is distinct from
        (unbilled_requests, unbilled_input_tokens, unbilled_output_tokens, unbilled_credits)`.execute(
    tx,
  )
  return rows
}
