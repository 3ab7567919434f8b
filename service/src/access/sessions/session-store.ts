import type { LimitOverrides } from '@gatehouse/contract/limits'
import type { ProjectRole, Role } from '@gatehouse/contract/role'
import { type Selectable, sql } from 'kysely'

import { selectOverrides } from '#access/credential-store.ts'
import type { Actor } from '#audit/actor.ts'
import type { Session } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'

export type SessionRow = Selectable<Session>

/** Whose sessions: those of a member, or those that were opened with an administrator key. */
export type SessionOwner = { readonly organizationId: string } & (
  | { readonly memberId: string; readonly keyId?: undefined }
  | { readonly keyId: string; readonly memberId?: undefined }
)

export type NewSession = {
  id: string
  form: 'browser' | 'token'
  method: string
  hash: Buffer
  createdAt: Date
  expiresAt: Date
}

/** A session with what decides whether it still counts and what it may do; ended ones included. One query. */
export async function findSessionByHash(db: Db, hashes: readonly Buffer[]) {
  return db
    .selectFrom('session')
    .innerJoin('organization', 'organization.id', 'session.organization_id')
    .leftJoin('member', (join) =>
      join
        .onRef('member.organization_id', '=', 'session.organization_id')
        .onRef('member.id', '=', 'session.member_id'),
    )
    .leftJoin('api_key as key', (join) =>
      join
        .onRef('key.organization_id', '=', 'session.organization_id')
        .onRef('key.id', '=', 'session.key_id'),
    )
    .select([
      'session.id',
      'session.organization_id',
      'session.member_id',
      'session.key_id',
      sql<'browser' | 'token'>`session.form`.as('form'),
      'session.last_seen_at',
      'session.expires_at',
      'session.ended_at',
      'organization.status as organization_status',
      'organization.plan',
      'organization.paid_micro_usd',
      'member.email as member_email',
      'member.name as member_name',
      'member.status as member_status',
      sql<Role | null>`member.role`.as('member_role'),
      sql<Record<string, ProjectRole> | null>`(
        select jsonb_object_agg(own.project_id, own.role) from project_member own
        where own.organization_id = session.organization_id and own.member_id = session.member_id
      )`.as('project_roles'),
      'key.permissions as key_permissions',
      'key.expires_at as key_expires_at',
      'key.revoked_at as key_revoked_at',
      selectOverrides([['organization', sql.ref('organization.id')]])
        .$castTo<LimitOverrides | null>()
        .as('limit_overrides'),
    ])
    .where('session.secret_hash', 'in', hashes)
    .executeTakeFirst()
}
export type FoundSession = NonNullable<Awaited<ReturnType<typeof findSessionByHash>>>

/**
 * Locks the member or the key until the transaction ends, and notes that a member has been seen. Returns who the owner is
 * as an actor, or undefined unless it may sign in: the member must be active, the key an administrator's and valid.
 */
export async function lockOwner(
  tx: Tx,
  owner: SessionOwner,
  now: Date,
): Promise<Omit<Actor, 'requestId'> | undefined> {
  const { organizationId, memberId, keyId } = owner
  if (memberId !== undefined) {
    const person = await tx
      .updateTable('member')
      .set({ last_seen_at: now })
      .where('organization_id', '=', organizationId)
      .where('id', '=', memberId)
      .where('status', '=', 'active')
      .returning(['name', 'email'])
      .executeTakeFirst()
    return person && { id: memberId, type: 'member', person }
  }
  const key = await tx
    .selectFrom('api_key')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('id', '=', keyId)
    .where('kind', '=', 'admin')
    .where('revoked_at', 'is', null)
    .where(({ eb, or }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .forNoKeyUpdate()
    .executeTakeFirst()
  return key && { id: keyId, type: 'admin_key' }
}

export async function insertSession(
  tx: Tx,
  { organizationId, memberId, keyId }: SessionOwner,
  session: NewSession,
): Promise<SessionRow> {
  return tx
    .insertInto('session')
    .values({
      organization_id: organizationId,
      id: session.id,
      member_id: memberId ?? null,
      key_id: keyId ?? null,
      form: session.form,
      method: session.method,
      secret_hash: session.hash,
      created_at: session.createdAt,
      last_seen_at: session.createdAt,
      expires_at: session.expiresAt,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

const isOf = ({ memberId, keyId }: SessionOwner) =>
  memberId !== undefined ? sql<boolean>`member_id = ${memberId}` : sql<boolean>`key_id = ${keyId}`

/** Ends the oldest open sessions until at most `kept` are left; returns the ended ones. The caller has locked the owner. */
export async function endOldest(tx: Tx, owner: SessionOwner, kept: number, now: Date) {
  return tx
    .updateTable('session')
    .set({ ended_at: now })
    .where('organization_id', '=', owner.organizationId)
    .where(({ eb, selectFrom }) =>
      eb(
        'id',
        'in',
        selectFrom('session as open')
          .select('open.id')
          .where('open.organization_id', '=', owner.organizationId)
          .where(isOf(owner))
          .where('open.ended_at', 'is', null)
          .orderBy('open.created_at', 'desc')
          .orderBy('open.id', 'desc')
          .offset(kept),
      ),
    )
    .where('ended_at', 'is', null)
    .returningAll()
    .execute()
}

/** Ends the open sessions of an owner, or one of them; returns those that have ended now. */
export async function endSessionsOf(tx: Tx, owner: SessionOwner, now: Date, id?: string) {
  return tx
    .updateTable('session')
    .set({ ended_at: now })
    .where('organization_id', '=', owner.organizationId)
    .where(isOf(owner))
    .where('ended_at', 'is', null)
    .$if(id !== undefined, (query) => query.where('id', '=', id ?? ''))
    .returningAll()
    .execute()
}

export type Sighting = { organizationId: string; sessionId: string; at: Date; before: Date }

/**
 * Notes that a session and its member were seen, unless they were after `before`. A row that another transaction has locked
 * is passed over: the next request notes it.
 */
export async function writeSighting(db: Db, { organizationId, sessionId, at, before }: Sighting) {
  await sql`
    with seen as (
      update session set last_seen_at = ${at}
      where (organization_id, id) in (
        select organization_id, id from session
        where organization_id = ${organizationId} and id = ${sessionId}
          and ended_at is null and last_seen_at < ${before}
        for no key update skip locked
      )
      returning organization_id, member_id
    ), seen_member as materialized (
      select member.organization_id, member.id from member
      join seen on seen.organization_id = member.organization_id and seen.member_id = member.id
      for no key update of member skip locked
    )
    update member set last_seen_at = greatest(member.last_seen_at, ${at}::timestamptz)
    from seen_member
    where member.organization_id = seen_member.organization_id and member.id = seen_member.id`.execute(
    db,
  )
}
