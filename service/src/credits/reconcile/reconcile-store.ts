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
export const readStoredBalance = async (
  tx: Tx,
  organizationId: string,
): Promise<StoredBalance | undefined> =>
  (await readStoredBalances(tx, [organizationId])).get(organizationId)

/** Without organizations that have no account. */
export async function readStoredBalances(
  tx: Tx,
  organizationIds: readonly string[],
): Promise<Map<string, StoredBalance>> {
  const { rows } = await sql<StoredBalance & { id: string }>`
    select organization.id, posted, used, held, paid_micro_usd as paid,
      coalesce(holds.amount, 0)::text as open_holds, holds.overdue::text as overdue_holds
    from organization join credit_account on organization_id = organization.id,
      lateral (
        select sum(amount) as amount,
          count(*) filter (where expires_at < now() - interval '5 minutes') as overdue
        from credit_hold where credit_hold.organization_id = organization.id
      ) holds
    where organization.id = any(${organizationIds}::text[])`.execute(tx)
  return new Map(rows.map((row) => [row.id, row]))
}

/** What is known about an organization before its ledger is read. */
export type Start = {
  /** Entries from then on may still be overtaken, should the server's clock go back by up to a minute. */
  settledBefore: Date
  /** The position of the last entry. */
  end: LedgerPosition | undefined
  /** Of the row of its point: another one after each change. Undefined if there is none. */
  version: string | undefined
}

export async function readStarts(
  tx: Tx,
  organizationIds: readonly string[],
): Promise<Map<string, Start>> {
  type Row = {
    id: string
    settled_before: Date
    version: string | null
    at: Date | null
    seq: string | null
  }
  const { rows } = await sql<Row>`
    select given.id, now() - interval '1 minute' as settled_before, point.xmin::text as version,
      newest.at, newest.seq
    from unnest(${organizationIds}::text[]) as given (id)
    left join ledger_point point on point.organization_id = given.id
    left join lateral (
      select at, seq from ledger_entry
      where ledger_entry.organization_id = given.id
      order by at desc, seq desc limit 1
    ) newest on true`.execute(tx)
  return new Map(
    rows.map(({ id, settled_before, version, at, seq }) => [
      id,
      {
        settledBefore: settled_before,
        end: at && seq !== null ? { at, seq } : undefined,
        version: version ?? undefined,
      },
    ]),
  )
}

export type CheckedEntry = LedgerPosition & {
  organization_id: string
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

const entryColumns = sql`
  entry.organization_id, entry.id, entry.seq, entry.at, entry.debit, entry.credit, entry.amount,
  entry.kind, entry.project_id, entry.meta, coalesce(writeoff.amount, 0)::text as written_off`
const entriesWithWriteoffs = sql`
  ledger_entry entry left join ledger_entry writeoff
    on entry.kind in ('usage', 'late_usage') and writeoff.kind = 'writeoff'
      and writeoff.organization_id = entry.organization_id
      and writeoff.id = entry.id || ':writeoff'`

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
    select ${entryColumns} from ${entriesWithWriteoffs}
    where entry.organization_id = ${organizationId} ${isAfter}
    order by entry.at, entry.seq limit ${limit}`.execute(tx)
  return rows
}

/** The next entries of each organization, at most `limit` of each. */
export async function readNewEntries(
  tx: Tx,
  positions: readonly { id: string; after: LedgerPosition | undefined }[],
  limit: number,
): Promise<CheckedEntry[]> {
  const ids = positions.map(({ id }) => id)
  const times = positions.map(({ after }) => after?.at ?? null)
  const numbers = positions.map(({ after }) => after?.seq ?? null)
  const { rows } = await sql<CheckedEntry>`
    select page.*
    from unnest(${ids}::text[], ${times}::timestamptz[], ${numbers}::bigint[])
      as place (organization_id, at, seq)
    cross join lateral (
      select ${entryColumns} from ${entriesWithWriteoffs}
      where entry.organization_id = place.organization_id and (entry.at, entry.seq) >
        (coalesce(place.at, '-infinity'), coalesce(place.seq, 0))
      order by entry.at, entry.seq limit ${limit}
    ) page
    order by page.organization_id, page.at, page.seq`.execute(tx)
  return rows
}

export type UsageDayRow = {
  organization_id: string
  day: string
  project_id: string
  key_id: string
  model: string
  requests: string
  input_tokens: string
  output_tokens: string
  credits: string
}

/** Days from `from` on and before `before`. */
export type DayRange = { id: string; from: string; before: string }

export const readUsageDays = (tx: Tx, organizationId: string, from: string, before: string) =>
  readUsageDaysOf(tx, [{ id: organizationId, from, before }])

/** Without the calls that have no ledger entry because of BILLING=off. */
export async function readUsageDaysOf(tx: Tx, ranges: readonly DayRange[]): Promise<UsageDayRow[]> {
  const ids = ranges.map(({ id }) => id)
  const starts = ranges.map(({ from }) => from)
  const ends = ranges.map(({ before }) => before)
  const { rows } = await sql<UsageDayRow>`
    select sums.*
    from unnest(${ids}::text[], ${starts}::date[], ${ends}::date[])
      as days (organization_id, first, before)
    cross join lateral (
      select usage_day.organization_id, day::text, project_id, key_id, model,
        (requests - unbilled_requests)::text as requests,
        (input_tokens - unbilled_input_tokens)::text as input_tokens,
        (output_tokens - unbilled_output_tokens)::text as output_tokens,
        (credits - unbilled_credits)::text as credits
      from usage_day
      where usage_day.organization_id = days.organization_id
        and day >= days.first and day < days.before
        and (requests, input_tokens, output_tokens, credits) is distinct from
          (unbilled_requests, unbilled_input_tokens, unbilled_output_tokens, unbilled_credits)
      offset 0 -- as it stands: without it the planner may read the whole table once instead
    ) sums`.execute(tx)
  return rows
}
