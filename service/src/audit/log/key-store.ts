import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

/** A public key that signs checkpoints, or has signed some. */
export type PublicKey = { id: number; publicKey: Buffer; createdAt: Date; retiredAt: Date | null }

export async function listSigningKeys(db: Db): Promise<PublicKey[]> {
  const { rows } = await sql<PublicKey>`
    select id, public_key as "publicKey", created_at as "createdAt", retired_at as "retiredAt"
    from audit_key order by id desc`.execute(db)
  return rows
}

/** Adds keys that are new. The first is the one that signs; all others are retired from now on. */
export async function putKeys(
  tx: Tx,
  keys: readonly [Pick<PublicKey, 'id' | 'publicKey'>, ...Pick<PublicKey, 'id' | 'publicKey'>[]],
  now: Date,
) {
  for (const { id, publicKey } of keys) {
    await sql`
      insert into audit_key (id, public_key, created_at) values (${id}, ${publicKey}, ${now})
      on conflict (id) do nothing`.execute(tx)
  }
  const [signing] = keys
  await sql`update audit_key set retired_at = null where id = ${signing.id} and retired_at is not null`.execute(
    tx,
  )
  await sql`update audit_key set retired_at = ${now} where id <> ${signing.id} and retired_at is null`.execute(
    tx,
  )
}
