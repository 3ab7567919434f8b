import type { Selectable } from 'kysely'

import type { ProviderSession } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'

export type ProviderSessionRow = Selectable<ProviderSession>

/** An open session, with the member whose it is. */
export type OpenProviderSession = ProviderSessionRow & { member_id: string }

export async function insertProviderSession(tx: Tx, row: ProviderSessionRow) {
  await tx.insertInto('provider_session').values(row).execute()
}

type Copy = { organizationId: string; from: string; to: string; at: Date }

/**
 * Lets a session end with the account at the provider that another session has come from. Without tokens: only the first session
 * asks the provider about the account.
 */
export async function copyProviderSession(tx: Tx, { organizationId, from, to, at }: Copy) {
  await tx
    .insertInto('provider_session')
    .columns([
      'organization_id',
      'session_id',
      'issuer',
      'subject',
      'provider_session',
      'checked_at',
    ])
    .expression(({ selectFrom }) =>
      selectFrom('provider_session as known')
        .select((known) => [
          'known.organization_id',
          known.val(to).as('session_id'),
          'known.issuer',
          'known.subject',
          'known.provider_session',
          known.val(at).as('checked_at'),
        ])
        .where('known.organization_id', '=', organizationId)
        .where('known.session_id', '=', from),
    )
    .execute()
}

export async function findProviderSession(
  db: Db,
  organizationId: string,
  sessionId: string,
): Promise<ProviderSessionRow | undefined> {
  return db
    .selectFrom('provider_session')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('session_id', '=', sessionId)
    .executeTakeFirst()
}

const selectOpen = (db: Db | Tx) =>
  db
    .selectFrom('provider_session')
    .innerJoin('session', (join) =>
      join
        .onRef('session.organization_id', '=', 'provider_session.organization_id')
        .onRef('session.id', '=', 'provider_session.session_id'),
    )
    .where('session.ended_at', 'is', null)
    .where('session.member_id', 'is not', null)
    .selectAll('provider_session')
    .select('session.member_id')

type Ended = { issuer: string; subject: string | null; providerSession: string | null }

/** The open sessions that a provider has ended: of an account, of one session at the provider, or of both. */
export async function listOpenSessions(
  tx: Tx,
  { issuer, subject, providerSession }: Ended,
  limit: number,
): Promise<OpenProviderSession[]> {
  return selectOpen(tx)
    .where('provider_session.issuer', '=', issuer)
    .$if(subject !== null, (query) => query.where('provider_session.subject', '=', subject ?? ''))
    .$if(providerSession !== null, (query) =>
      query.where('provider_session.provider_session', '=', providerSession ?? ''),
    )
    .limit(limit)
    .$castTo<OpenProviderSession>()
    .execute()
}

type Claim = { before: Date; mark: Date; now: Date; limit: number }

/**
 * Takes open sessions that were last compared before a moment, and marks them, so that no other process takes them too. If this
 * process dies, they are taken again when the mark is old enough.
 */
export async function claimDueSessions(
  tx: Tx,
  { before, mark, now, limit }: Claim,
): Promise<OpenProviderSession[]> {
  const due = await selectOpen(tx)
    .where('provider_session.refresh_token', 'is not', null)
    .where('provider_session.checked_at', '<', before)
    .where('session.expires_at', '>', now)
    .orderBy('provider_session.checked_at')
    .limit(limit)
    .forUpdate('provider_session')
    .skipLocked()
    .$castTo<OpenProviderSession>()
    .execute()
  for (const { organization_id, session_id } of due) {
    await tx
      .updateTable('provider_session')
      .set({ checked_at: mark })
      .where('organization_id', '=', organization_id)
      .where('session_id', '=', session_id)
      .execute()
  }
  return due
}

/** Notes that the claims were compared, and the token for the next time. */
export async function noteComparison(
  tx: Tx,
  { organization_id, session_id }: Pick<ProviderSessionRow, 'organization_id' | 'session_id'>,
  { refreshToken, at }: { refreshToken: Buffer | null; at: Date },
) {
  await tx
    .updateTable('provider_session')
    .set({ refresh_token: refreshToken, checked_at: at })
    .where('organization_id', '=', organization_id)
    .where('session_id', '=', session_id)
    .execute()
}
