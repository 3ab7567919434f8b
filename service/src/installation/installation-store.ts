import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

/** `keyCheck` is null until a master key has been proved to be the right one. */
export type InstallationRow = { id: string; keyCheck: Buffer | null }

const columns = sql`id::text as id, key_check as "keyCheck"`

export async function readInstallation(db: Db): Promise<InstallationRow | undefined> {
  return (await sql<InstallationRow>`select ${columns} from installation`.execute(db)).rows[0]
}

/** Processes that start at the same time wait for each other here. */
export async function lockInstallation(tx: Tx): Promise<InstallationRow | undefined> {
  const query = sql<InstallationRow>`select ${columns} from installation for update`
  return (await query.execute(tx)).rows[0]
}

/** False if the value is no longer `before`. */
export async function replaceKeyCheck(
  tx: Tx,
  { before, after }: { before: Buffer | null; after: Buffer },
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update installation set key_check = ${after} where key_check is not distinct from ${before}`.execute(
    tx,
  )
  return numAffectedRows === 1n
}

export async function hasApiKeys(tx: Tx): Promise<boolean> {
  const query = sql<{ found: boolean }>`select exists (select from api_key) as found`
  return (await query.execute(tx)).rows[0]?.found ?? false
}
