import { sql } from 'kysely'

import type { StoredObject } from '#exports/destinations/destination.ts'
import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { type DeliveryLease, recordSuccess } from './lease-store.ts'

/** A digest has at most this many objects; the others are in the next one. */
const objectsMax = 1000

export type PendingDigest = {
  /** The hour in which they were stored. */
  from: Date
  objects: StoredObject[]
  previous: Pick<StoredObject, 'key' | 'sha256'> | null
}

/** The objects of the oldest hour that is over, in the order in which they were stored. */
export async function findPendingDigest(
  db: Db,
  sinkId: string,
): Promise<PendingDigest | undefined> {
  const { rows } = await sql<StoredObject & { hour: Date }>`
    with due as (
      select date_trunc('hour', min(at), 'UTC') as hour from export_object
      where sink_id = ${sinkId} having date_trunc('hour', min(at), 'UTC') < date_trunc('hour', now(), 'UTC')
    )
    select due.hour, key, sha256, bytes::float8 as bytes, first_seq::float8 as first, last_seq::float8 as last
    from export_object, due
    where sink_id = ${sinkId} and at < due.hour + interval '1 hour'
    order by at, key limit ${objectsMax}`.execute(db)
  const [first] = rows
  if (!first) return undefined
  const sink = await db
    .selectFrom('export_sink')
    .select(['digest_key as key', 'digest_sha256 as sha256'])
    .where('id', '=', sinkId)
    .executeTakeFirst()
  const previous = sink?.key && sink.sha256 ? { key: sink.key, sha256: sink.sha256 } : null
  return { from: first.hour, objects: rows.map(({ hour: _, ...object }) => object), previous }
}

/** The objects that a digest lists are no longer needed; the digest is named by the next one. */
export async function finishDigest(
  db: Db,
  lease: DeliveryLease,
  objects: readonly StoredObject[],
  digest: Pick<StoredObject, 'key' | 'sha256'>,
) {
  const { id: sinkId } = lease.sink
  await transact(db, async (tx) => {
    await recordSuccess(tx, lease, {})
    await tx
      .updateTable('export_sink')
      .set({ digest_key: digest.key, digest_sha256: digest.sha256 })
      .where('id', '=', sinkId)
      .execute()
    await sql`
      delete from export_object
      where sink_id = ${sinkId} and key = any(${objects.map(({ key }) => key)})`.execute(tx)
  })
}
