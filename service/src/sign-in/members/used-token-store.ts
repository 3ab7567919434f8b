import { createHash } from 'node:crypto'

import type { Db, Tx } from '#platform/database.ts'

/** Whether this is the first use. Of uses at the same time, in any process, one is the first. */
export async function useOnce(db: Db | Tx, token: string, expiresAt: Date): Promise<boolean> {
  const hash = createHash('sha256').update(token).digest()
  const row = await db
    .insertInto('used_token')
    .values({ hash, expires_at: expiresAt })
    .onConflict((conflict) => conflict.doNothing())
    .returning('hash')
    .executeTakeFirst()
  return row !== undefined
}

/** Removes at most `limit` of those that would be refused by their age alone; returns how many. */
export async function sweepUsedTokens(tx: Tx, now: Date, limit: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('used_token')
    .where('hash', 'in', (from) =>
      from.selectFrom('used_token').select('hash').where('expires_at', '<', now).limit(limit),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
