import { type Selectable, sql } from 'kysely'

import type { Session } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'

/** A session of a member, without its secret. */
export type OpenSession = Pick<
  Selectable<Session>,
  'id' | 'method' | 'created_at' | 'last_seen_at' | 'expires_at'
> & { member_id: string; form: 'browser' | 'token' }

type Moment = { now: Date; idleMs: number }

/** Those that can be used, the newest first. A member has few, so all of them. */
export async function listSessionsOf(
  db: Db,
  member: { organization_id: string; id: string },
  { now, idleMs }: Moment,
): Promise<OpenSession[]> {
  return db
    .selectFrom('session')
    .select(['id', 'member_id', 'form', 'method', 'created_at', 'last_seen_at', 'expires_at'])
    .where('organization_id', '=', member.organization_id)
    .where('member_id', '=', member.id)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .where('last_seen_at', '>', new Date(now.getTime() - idleMs))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .$castTo<OpenSession>()
    .execute()
}

/** Removes at most `limit` sessions that ended, or would have ended by themselves, before a moment; returns how many. */
export async function sweepSessions(tx: Tx, before: Date, limit: number): Promise<number> {
  // Rows that another transaction has locked are passed over: another worker removes them, or their member is being removed.
  const { numAffectedRows = 0n } = await sql`
    delete from session
    where (organization_id, id) in (
      select organization_id, id from session
      where least(ended_at, expires_at) < ${before}
      order by least(ended_at, expires_at)
      limit ${limit}
      for update skip locked
    )`.execute(tx)
  return Number(numAffectedRows)
}
