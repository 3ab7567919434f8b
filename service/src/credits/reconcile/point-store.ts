import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'

import type { Point } from './ledger-proof.ts'
import type { StoredBalance } from './reconcile-store.ts'
import type { LedgerSums } from './sum-ledger.ts'

export type OrganizationPoint = { organizationId: string; point: Point }

/** Where an organization stands: its stored balance, and what its ledger was last proven to add up to. */
export type Standing = {
  organizationId: string
  /** Undefined if it has no account, which is a difference. */
  balance: StoredBalance | undefined
  sums: LedgerSums | undefined
  /** Whether there are entries after the point, or entries and no point. */
  hasNew: boolean
  differs: boolean
}

type SumColumns = {
  wallet: string | null
  used_then: string
  paid_then: string
  written_off: string
  written_off_of_charges: string
}
type StandingRow = SumColumns &
  Omit<StoredBalance, 'posted'> & {
    id: string
    posted: string | null
    has_new: boolean
    differs: boolean | null
  }

/** One statement for many organizations, so that those without news cost next to nothing. */
export async function readStandings(db: Db, after: string, limit: number): Promise<Standing[]> {
  const { rows } = await sql<StandingRow>`
    select organization.id, account.posted, account.used, account.held,
      organization.paid_micro_usd as paid, coalesce(holds.amount, 0)::text as open_holds,
      holds.overdue::text as overdue_holds, point.wallet, point.used as used_then,
      point.paid as paid_then, point.written_off, point.written_off_of_charges, point.differs,
      exists (
        select from ledger_entry entry
        where entry.organization_id = organization.id and (entry.at, entry.seq) >
          (coalesce(point.at, '-infinity'), coalesce(point.seq, 0))
      ) as has_new
    from (
      -- First of all: joined with all organizations, the others would be read from their first row on each time.
      select id, paid_micro_usd from organization
      where id > ${after} order by id limit ${limit}
    ) organization
    left join credit_account account on account.organization_id = organization.id
    left join ledger_point point on point.organization_id = organization.id
    cross join lateral (
      select sum(amount) as amount,
        count(*) filter (where expires_at < now() - interval '5 minutes') as overdue
      from credit_hold where credit_hold.organization_id = organization.id
    ) holds
    order by organization.id`.execute(db)
  return rows.map(({ id, posted, has_new, differs, ...row }) => ({
    organizationId: id,
    balance: posted === null ? undefined : { ...row, posted },
    sums: row.wallet === null ? undefined : sumsOf({ ...row, wallet: row.wallet }),
    hasNew: has_new,
    differs: differs ?? false,
  }))
}

const sumsOf = (row: SumColumns & { wallet: string }): LedgerSums => ({
  wallet: BigInt(row.wallet),
  used: BigInt(row.used_then),
  paid: BigInt(row.paid_then),
  writtenOff: BigInt(row.written_off),
  writtenOffOfCharges: BigInt(row.written_off_of_charges),
})

type PointRow = SumColumns & {
  organization_id: string
  wallet: string
  at: Date
  seq: string
  day: string
  day_sums: Point['openDay']['sums']
}

export async function readPoints(
  db: Db,
  organizationIds: readonly string[],
): Promise<Map<string, Point>> {
  const { rows } = await sql<PointRow>`
    select organization_id, at, seq, wallet, used as used_then, paid as paid_then, written_off,
      written_off_of_charges, day::text, day_sums
    from ledger_point
    where organization_id = any(${organizationIds}::text[]) and not differs`.execute(db)
  return new Map(
    rows.map((row) => [
      row.organization_id,
      {
        at: row.at,
        seq: row.seq,
        sums: sumsOf(row),
        openDay: { day: row.day, sums: row.day_sums },
      },
    ]),
  )
}

const jsonOf = (points: readonly OrganizationPoint[]) =>
  JSON.stringify(
    points.map(({ organizationId, point: { at, seq, sums, openDay } }) => ({
      organization_id: organizationId,
      at,
      seq,
      wallet: String(sums.wallet),
      used: String(sums.used),
      paid: String(sums.paid),
      written_off: String(sums.writtenOff),
      written_off_of_charges: String(sums.writtenOffOfCharges),
      day: openDay.day,
      day_sums: openDay.sums,
      differs: false,
    })),
  )

const columns = sql`organization_id, at, seq, wallet, used, paid, written_off,
  written_off_of_charges, day, day_sums, differs`

const insertPoints = (points: readonly OrganizationPoint[]) => sql`
  insert into ledger_point as known (${columns})
  select ${columns} from jsonb_populate_recordset(null::ledger_point, ${jsonOf(points)}::jsonb)
  order by organization_id
  on conflict (organization_id) do update set
    at = excluded.at, seq = excluded.seq, wallet = excluded.wallet, used = excluded.used,
    paid = excluded.paid, written_off = excluded.written_off,
    written_off_of_charges = excluded.written_off_of_charges, day = excluded.day,
    day_sums = excluded.day_sums, differs = excluded.differs`

/** Points that were reached from earlier ones. A difference that a check of the whole ledger has found meanwhile stays. */
export async function movePoints(db: Db, points: readonly OrganizationPoint[]) {
  if (points.length > 0) await sql`${insertPoints(points)} where not known.differs`.execute(db)
}

/** What checks of whole ledgers have found: a point each, or that something differs, or that there are no entries. */
export type ProofOutcome = {
  organizationId: string
  point: Point | undefined
  differs: boolean
  /** Of the row of the point, before the ledger was read. */
  version: string | undefined
}

export async function saveOutcomes(db: Db, outcomes: readonly ProofOutcome[]) {
  const proven = outcomes.flatMap(({ organizationId, point, differs }) =>
    point && !differs ? [{ organizationId, point }] : [],
  )
  const mayChange = isAsRead(outcomes)
  if (proven.length > 0) await sql`${insertPoints(proven)} where ${mayChange}`.execute(db)
  const differing = outcomes.filter(({ differs }) => differs)
  if (differing.length > 0) await markDiffering(db, idsOf(differing))
  const empty = outcomes.filter(({ point, differs }) => !point && !differs)
  if (empty.length > 0) {
    await sql`
      delete from ledger_point as known
      where organization_id = any(${idsOf(empty)}::text[]) and ${mayChange}`.execute(db)
  }
}

const idsOf = (outcomes: readonly ProofOutcome[]) =>
  outcomes.map(({ organizationId }) => organizationId)

/**
 * A difference that another check has found since the ledger was read stays: this one may have read the entry before it was changed. Each
 * check that finds a difference writes the row, so that `xmin` tells whether one has.
 */
function isAsRead(outcomes: readonly ProofOutcome[]) {
  const versions = outcomes.map(({ organizationId, version }) => `${organizationId} ${version}`)
  return sql`(not known.differs
    or known.organization_id || ' ' || known.xmin::text = any(${versions}::text[]))`
}

const markDiffering = (db: Db, organizationIds: readonly string[]) =>
  sql`
    insert into ledger_point (${columns})
    select id, '-infinity', 0, 0, 0, 0, 0, 0, '-infinity', '[]', true
    from organization where id = any(${organizationIds}::text[]) order by id
    on conflict (organization_id) do update set
      at = excluded.at, seq = 0, wallet = 0, used = 0, paid = 0, written_off = 0,
      written_off_of_charges = 0, day = excluded.day, day_sums = '[]', differs = true`.execute(db)
