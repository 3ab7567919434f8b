import type { Selectable } from 'kysely'

import type { SessionOwner } from '#access/sessions/session-store.ts'
import type { DeviceSignIn } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'

export type DeviceRow = Selectable<DeviceSignIn>
type NewDevice = Omit<DeviceRow, 'polled_at' | 'refused_at' | 'organization_id' | 'session_id'>

/** False: its user code is another device's already. */
export async function insertDevice(tx: Tx, row: NewDevice): Promise<boolean> {
  const inserted = await tx
    .insertInto('device_sign_in')
    .values(row)
    .onConflict((conflict) => conflict.column('user_hash').doNothing())
    .returning('device_hash')
    .executeTakeFirst()
  return inserted !== undefined
}

/** How many devices wait, of an address or of all; counts up to `max`. */
export async function countWaiting(
  db: Db | Tx,
  { address, now, max }: { address: string | null; now: Date; max: number },
): Promise<number> {
  const { count } = await db
    .selectFrom((from) =>
      from
        .selectFrom('device_sign_in')
        .select('device_hash')
        .where('expires_at', '>', now)
        .$if(address !== null, (query) => query.where('address', '=', address ?? ''))
        .limit(max)
        .as('waiting'),
    )
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Locks the device until the transaction ends: of two requests for its session, one gets it. */
export async function lockDevice(
  tx: Tx,
  { hashes, clientId }: { hashes: readonly Buffer[]; clientId: string },
): Promise<DeviceRow | undefined> {
  return tx
    .selectFrom('device_sign_in')
    .selectAll()
    .where('device_hash', 'in', hashes)
    .where('client_id', '=', clientId)
    .forUpdate()
    .executeTakeFirst()
}

export async function notePoll(
  tx: Tx,
  { device_hash }: DeviceRow,
  { at, intervalSeconds }: { at: Date; intervalSeconds: number },
) {
  await tx
    .updateTable('device_sign_in')
    .set({ polled_at: at, interval_seconds: intervalSeconds })
    .where('device_hash', '=', device_hash)
    .execute()
}

export async function deleteDevice(tx: Tx, { device_hash }: DeviceRow) {
  await tx.deleteFrom('device_sign_in').where('device_hash', '=', device_hash).execute()
}

/** A device that waits for an answer, by the code that a person has typed. */
export async function findByUserCode(
  db: Db,
  hashes: readonly Buffer[],
  now: Date,
): Promise<DeviceRow | undefined> {
  return db
    .selectFrom('device_sign_in')
    .selectAll()
    .where('user_hash', 'in', hashes)
    .where('expires_at', '>', now)
    .where('session_id', 'is', null)
    .where('refused_at', 'is', null)
    .executeTakeFirst()
}

/** What a person has said: the session that confirms it, or that it is refused. */
export type Answer = { organization_id: string; session_id: string } | { refused_at: Date }

/** Whether it still waited for an answer: of two answers, the first counts. */
export async function answerDevice(
  tx: Tx,
  { device_hash }: DeviceRow,
  answer: Answer,
  now: Date,
): Promise<boolean> {
  const row = await tx
    .updateTable('device_sign_in')
    .set(answer)
    .where('device_hash', '=', device_hash)
    .where('expires_at', '>', now)
    .where('session_id', 'is', null)
    .where('refused_at', 'is', null)
    .returning('device_hash')
    .executeTakeFirst()
  return row !== undefined
}

/** Whose the session is that has confirmed a device; undefined when it has ended, or its organization is suspended. */
export async function findConfirmingOwner(
  tx: Tx,
  { organization_id, session_id }: DeviceRow,
  now: Date,
): Promise<SessionOwner | undefined> {
  const row = await tx
    .selectFrom('session')
    .innerJoin('organization', 'organization.id', 'session.organization_id')
    .select(['session.organization_id', 'session.member_id', 'session.key_id'])
    .where('session.organization_id', '=', organization_id ?? '')
    .where('session.id', '=', session_id ?? '')
    .where('session.ended_at', 'is', null)
    .where('session.expires_at', '>', now)
    .where('organization.status', '=', 'active')
    .executeTakeFirst()
  if (!row) return undefined
  const { organization_id: organizationId, member_id: memberId, key_id: keyId } = row
  return memberId === null ? { organizationId, keyId: keyId ?? '' } : { organizationId, memberId }
}

/** Removes at most `limit` of those that expired before a moment; returns how many. */
export async function sweepDevices(tx: Tx, before: Date, limit: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('device_sign_in')
    .where('device_hash', 'in', (from) =>
      from
        .selectFrom('device_sign_in')
        .select('device_hash')
        .where('expires_at', '<', before)
        .orderBy('expires_at')
        .limit(limit),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
