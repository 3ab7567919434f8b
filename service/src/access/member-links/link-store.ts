import type { MemberStatus } from '@gatehouse/contract/members/member'

import type { Db, Tx } from '#platform/database.ts'

export type LinkKind = 'sign_in' | 'invitation'

/** A link by its secret: the hashes are those with each master key. */
export type LinkName = { readonly kind: LinkKind; readonly hashes: readonly Buffer[] }

type NewLink = {
  organizationId: string
  memberId: string
  kind: LinkKind
  hash: Buffer
  expiresAt: Date
}

/** Replaces the link of the same kind that the member had. */
export async function saveLink(
  tx: Tx,
  { organizationId, memberId, kind, hash, expiresAt }: NewLink,
) {
  const values = { secret_hash: hash, expires_at: expiresAt }
  await tx
    .insertInto('member_link')
    .values({ organization_id: organizationId, member_id: memberId, kind, ...values })
    .onConflict((conflict) =>
      conflict.columns(['organization_id', 'member_id', 'kind']).doUpdateSet(values),
    )
    .execute()
}

/** A link that has not expired, with the member whom it is for and the organization, whatever has become of them. */
export async function findLink(db: Db | Tx, { kind, hashes }: LinkName, now: Date) {
  return db
    .selectFrom('member_link as link')
    .innerJoin('member', (join) =>
      join
        .onRef('member.organization_id', '=', 'link.organization_id')
        .onRef('member.id', '=', 'link.member_id'),
    )
    .innerJoin('organization', 'organization.id', 'link.organization_id')
    .select([
      'link.organization_id',
      'link.member_id',
      'link.secret_hash',
      'member.email',
      'member.name',
      'member.status',
      'organization.name as organization_name',
      'organization.status as organization_status',
    ])
    .where('link.kind', '=', kind)
    .where('link.secret_hash', 'in', hashes)
    .where('link.expires_at', '>', now)
    .$narrowType<{ status: MemberStatus }>()
    .executeTakeFirst()
}
export type FoundLink = NonNullable<Awaited<ReturnType<typeof findLink>>>

/** Removes a link that has not expired. Of uses at the same time one is told whom it is for, and the others undefined. */
export async function takeLink(tx: Tx, { kind, hashes }: LinkName, now: Date) {
  return tx
    .deleteFrom('member_link')
    .where('kind', '=', kind)
    .where('secret_hash', 'in', hashes)
    .where('expires_at', '>', now)
    .returning(['organization_id', 'member_id'])
    .executeTakeFirst()
}

/** Removes at most `limit` of those that have expired; returns how many. */
export async function sweepLinks(tx: Tx, now: Date, limit: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('member_link')
    .where('secret_hash', 'in', (from) =>
      from
        .selectFrom('member_link')
        .select('secret_hash')
        .where('expires_at', '<=', now)
        .orderBy('expires_at')
        .limit(limit),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
