import { deadLettersCounted, type ExportSink } from '@gatehouse/contract/exports/export-sink'
import { type RawBuilder, sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'

import type { Sink } from './sink.ts'

/** How the delivery to a sink goes. */
type Delivery = {
  state: ExportSink['state']
  lastSuccessAt: Date | null
  lastErrorAt: Date | null
  lastError: string | null
  pendingEvents: number
  /** The oldest event that is not delivered; null: all are. Its id begins with its time. */
  oldestEventId: string | null
  deadLetters: number
}
export type SinkWithDelivery = Sink & Delivery

/** Of the table as `s`, under the names of a `Sink`. */
export const sinkColumns = sql`s.id, s.organization_id as "organizationId", s.type, s.label, s.enabled, s.config, s.secrets,
  s.managed_by as "managedBy",  s.created_at as "createdAt", s.updated_at as "updatedAt"`

const withDelivery = (condition: RawBuilder<unknown>) => sql<SinkWithDelivery>`
  select ${sinkColumns}, case when s.enabled then c.state else 'disabled' end as state,
    c.last_success_at as "lastSuccessAt", c.last_error_at as "lastErrorAt", c.last_error as "lastError",
    greatest(coalesce(h.org_seq, 0) - c.org_seq, 0)::float8 as "pendingEvents",
    next.event_id as "oldestEventId", dead.count as "deadLetters"
  from export_sink s
  join export_cursor c on c.sink_id = s.id and not c.is_replay
  left join audit_head h on h.organization_id = s.organization_id and h.org_seq > c.org_seq
  left join lateral (
    select event_id from audit_log
    where organization_id = s.organization_id and org_seq = c.org_seq + 1 and day >= c.day
    limit 1
  ) as next on true
  cross join lateral (
    select count(*)::integer from (
      select from export_dead_letter where sink_id = s.id
      order by org_seq limit ${sql.lit(deadLettersCounted)}
    ) as counted
  ) as dead
  where ${condition}`

export async function findSinkWithDelivery(
  db: Db | Tx,
  organizationId: string,
  id: string,
): Promise<SinkWithDelivery | undefined> {
  const condition = sql`s.organization_id = ${organizationId} and s.id = ${id}`
  return (await withDelivery(condition).execute(db)).rows[0]
}

/** Returns one sink more than the limit if there are more. */
export async function listSinks(
  db: Db,
  organizationId: string,
  page: Page,
): Promise<SinkWithDelivery[]> {
  const direction = page.order === 'asc' ? sql`asc` : sql`desc`
  const wanted = sql`s.id in (
    select id from export_sink where organization_id = ${organizationId} and ${isAfter(page)}
    order by created_at ${direction}, id ${direction} limit ${page.limit + 1}
  ) order by s.created_at ${direction}, s.id ${direction}`
  return (await withDelivery(wanted).execute(db)).rows
}

export async function findSinkPosition(
  db: Db,
  organizationId: string,
  id: string,
): Promise<Position | undefined> {
  return db
    .selectFrom('export_sink')
    .select(['id', 'created_at'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
}

export async function findSink(
  db: Db,
  organizationId: string,
  id: string,
): Promise<Sink | undefined> {
  const { rows } = await sql<Sink>`
    select ${sinkColumns} from export_sink s
    where s.organization_id = ${organizationId} and s.id = ${id}`.execute(db)
  return rows[0]
}

/** Reads a sink and locks its row until the transaction ends. */
export async function lockSink(
  tx: Tx,
  organizationId: string,
  id: string,
): Promise<Sink | undefined> {
  const { rows } = await sql<Sink>`
    select ${sinkColumns} from export_sink s
    where s.organization_id = ${organizationId} and s.id = ${id} for no key update`.execute(tx)
  return rows[0]
}

/** The organization's row has to be locked, so that the count stays true. */
export async function countSinks(tx: Tx, organizationId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from export_sink
    where organization_id = ${organizationId}`.execute(tx)
  return rows[0]?.count ?? 0
}

/** Inserts a sink that gets every event from now on: its cursor begins at the end of the log. */
export async function insertSink(tx: Tx, sink: Sink) {
  await sql`
    insert into export_sink (id, organization_id, type, label, enabled, config, secrets, managed_by, created_at, updated_at)
    values (${sink.id}, ${sink.organizationId}, ${sink.type}, ${sink.label}, ${sink.enabled},
      ${JSON.stringify(sink.config)}::jsonb, ${sink.secrets}, ${sink.managedBy}, ${sink.createdAt}, ${sink.updatedAt})`.execute(
    tx,
  )
  await sql`
    insert into export_cursor (sink_id, organization_id, is_replay, org_seq, signed_size, day, next_at)
    select ${sink.id}, ${sink.organizationId}, false, coalesce(h.org_seq, 0), coalesce(h.signed_size, 0),
      coalesce(h.day, (now() at time zone 'UTC')::date), now()
    from (values (${sink.organizationId})) as wanted (organization_id)
    left join audit_head h using (organization_id)`.execute(tx)
}

export async function updateSink(tx: Tx, sink: Sink) {
  await sql`
    update export_sink set label = ${sink.label}, enabled = ${sink.enabled},
      config = ${JSON.stringify(sink.config)}::jsonb, secrets = ${sink.secrets}, updated_at = ${sink.updatedAt}
    where organization_id = ${sink.organizationId} and id = ${sink.id}`.execute(tx)
}

/** Its cursors and dead letters go with it. */
export async function deleteSink(tx: Tx, { organizationId, id }: Sink) {
  await tx
    .deleteFrom('export_sink')
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .execute()
}

export type SealedSecrets = { id: string; organizationId: string; secrets: Buffer }

/** Sealed secrets of all organizations, in the order of the ids of their sinks. */
export async function listSealedSecrets(
  db: Db,
  after: string,
  limit: number,
): Promise<SealedSecrets[]> {
  const { rows } = await sql<SealedSecrets>`
    select id, organization_id as "organizationId", secrets from export_sink
    where id > ${after} and secrets is not null order by id limit ${limit}`.execute(db)
  return rows
}

/** False if other secrets have been saved in the meantime. */
export async function replaceSealedSecrets(
  tx: Tx,
  { id, secrets }: SealedSecrets,
  sealed: Buffer,
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update export_sink set secrets = ${sealed} where id = ${id} and secrets = ${secrets}`.execute(
    tx,
  )
  return numAffectedRows === 1n
}
