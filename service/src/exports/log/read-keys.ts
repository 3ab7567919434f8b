import { type AuditKey, readAuditKeys } from '@gatehouse/contract/exports/audit-log'
import type { FastifyInstance } from 'fastify'

import { keyNameOf, verifierKeyOf } from '#audit/log/checkpoint-note.ts'
import { listSigningKeys, type PublicKey } from '#audit/log/key-store.ts'
import { bind } from '#http/bind.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

/** The endpoint is public and has no rate limit: the database is asked at most so often. */
const cachedMs = 10_000

/** A process that has read the keys once serves them while the database is away, because old ones never change. */
export function serveReadAuditKeys(app: FastifyInstance, { db, now }: { db: Db; now: Clock }) {
  let last: { keys: AuditKey[]; atMs: number } | undefined
  let reading: Promise<AuditKey[]> | undefined

  const read = async () => {
    const keys = (await listSigningKeys(db)).map(presentKey)
    last = { keys, atMs: now().getTime() }
    return keys
  }
  bind(app, readAuditKeys, async () => {
    if (last && Math.abs(now().getTime() - last.atMs) < cachedMs) return { keys: last.keys }
    reading ??= read().finally(() => (reading = undefined))
    const known = last?.keys
    return { keys: await (known ? reading.catch(() => known) : reading) }
  })
}

const presentKey = (key: PublicKey): AuditKey => ({
  id: key.id,
  name: keyNameOf(key.id),
  algorithm: 'Ed25519',
  public_key: key.publicKey.toString('base64'),
  verifier_key: verifierKeyOf(key),
  created_at: key.createdAt.toISOString(),
  retired_at: key.retiredAt?.toISOString() ?? null,
})
