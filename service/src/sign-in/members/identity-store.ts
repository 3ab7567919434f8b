import type { Selectable } from 'kysely'

import type { MemberIdentity } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'

export type IdentityRow = Selectable<MemberIdentity>

/** An account as one provider names it. */
export type AccountName = { readonly issuer: string; readonly subject: string }

export async function findIdentity(
  tx: Tx,
  organizationId: string,
  { issuer, subject }: AccountName,
): Promise<IdentityRow | undefined> {
  return tx
    .selectFrom('member_identity')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
}

export async function listIdentitiesOf(
  tx: Tx,
  organizationId: string,
  memberId: string,
): Promise<IdentityRow[]> {
  return tx
    .selectFrom('member_identity')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('member_id', '=', memberId)
    .limit(100)
    .execute()
}

/** Inserts it, or replaces what is known of the account. */
export async function saveIdentity(tx: Tx, row: IdentityRow) {
  const { client_id, member_id, lost_at, kept_at } = row
  await tx
    .insertInto('member_identity')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(['organization_id', 'issuer', 'subject'])
        .doUpdateSet({ client_id, member_id, lost_at, kept_at }),
    )
    .execute()
}

/** Organizations in which this account signs in already, or whose members have its verified address. */
export async function listMemberships(
  db: Db,
  { issuer, subject }: AccountName,
  verifiedEmail: string | null,
  limit: number,
): Promise<string[]> {
  const bound = db
    .selectFrom('member_identity')
    .select('organization_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
  const byAddress = db
    .selectFrom('member')
    .select('organization_id')
    .where('email', '=', verifiedEmail ?? '')
  const rows = await bound.union(byAddress).orderBy('organization_id').limit(limit).execute()
  return rows.map((row) => row.organization_id)
}

export async function updateEmail(
  tx: Tx,
  { organization_id, member_id }: Pick<IdentityRow, 'organization_id' | 'member_id'>,
  email: string,
) {
  await tx
    .updateTable('member')
    .set({ email })
    .where('organization_id', '=', organization_id)
    .where('id', '=', member_id)
    .execute()
}
