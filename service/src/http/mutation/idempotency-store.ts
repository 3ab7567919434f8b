import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'

export type IdempotencyClaim = {
  organizationId: string
  scope: Buffer
  key: string
  fingerprint: Buffer
  now: Date
}

export type StoredAnswer = { fingerprint: Buffer; status: number; answer: Buffer }

const lifetimeMs = 24 * 60 * 60 * 1000

/**
 * Claims the key for this transaction, or returns the answer that already belongs to it. While another
 * transaction holds the claim, the insert waits for its end, at most as long as `lock_timeout`.
 */
export async function claimKey(
  tx: Tx,
  { organizationId, scope, key, fingerprint, now }: IdempotencyClaim,
): Promise<StoredAnswer | undefined> {
  const expired = new Date(now.getTime() - lifetimeMs)
  const claimed = await tx
    .insertInto('idempotency_key')
    .values({ organization_id: organizationId, scope, key, fingerprint, created_at: now })
    .onConflict((conflict) =>
      conflict
        .columns(['organization_id', 'scope', 'key'])
        .doUpdateSet({ fingerprint, status: null, answer: null, created_at: now })
        .where('idempotency_key.created_at', '<', expired),
    )
    .returning('key')
    .executeTakeFirst()
  if (claimed) return undefined
  const { status, answer, ...stored } = await tx
    .selectFrom('idempotency_key')
    .select(['fingerprint', 'status', 'answer'])
    .where('organization_id', '=', organizationId)
    .where('scope', '=', scope)
    .where('key', '=', key)
    .executeTakeFirstOrThrow()
  if (status === null || !answer) throw new Error('a committed idempotency key has no answer')
  return { ...stored, status, answer }
}

export async function storeAnswer(
  tx: Tx,
  claim: IdempotencyClaim,
  { status, answer }: { status: number; answer: Buffer },
) {
  await tx
    .updateTable('idempotency_key')
    .set({ status, answer })
    .where('organization_id', '=', claim.organizationId)
    .where('scope', '=', claim.scope)
    .where('key', '=', claim.key)
    .execute()
}

type Row = Pick<IdempotencyClaim, 'organizationId' | 'scope' | 'key'>

/** Names table, column, organization and row, so that a sealed answer cannot be moved to another key. */
export const sealContextOf = ({ organizationId, scope, key }: Row) =>
  `idempotency_key/answer/${organizationId}/${scope.toString('hex')}/${key}`

/** The oldest answers: a process that was started with a wrong key can only have sealed newer ones. */
export async function listSealedAnswers(tx: Tx, limit: number) {
  const { rows } = await sql<Row & { answer: Buffer }>`
    select organization_id as "organizationId", scope, key, answer from idempotency_key
    where answer is not null order by created_at limit ${limit}`.execute(tx)
  return rows
}

/** Deletes at most `rowsMax` keys past their lifetime; returns how many. */
export async function sweepKeys(tx: Tx, now: Date, rowsMax: number): Promise<number> {
  const expired = new Date(now.getTime() - lifetimeMs)
  const { numDeletedRows } = await tx
    .deleteFrom('idempotency_key')
    .where(({ eb, refTuple, selectFrom }) =>
      eb(
        refTuple('organization_id', 'scope', 'key'),
        'in',
        selectFrom('idempotency_key')
          .select(['organization_id', 'scope', 'key'])
          .where('created_at', '<', expired)
          .limit(rowsMax)
          .$asTuple('organization_id', 'scope', 'key'),
      ),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
