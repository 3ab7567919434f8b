import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { transact, transactNamed } from '#platform/transaction.ts'

import { hashNote, writeNote } from './checkpoint-note.ts'
import {
  insertCheckpoints,
  lockUnsignedHeads,
  type StoredCheckpoint,
  type UnsignedHead,
} from './checkpoint-store.ts'
import { listSigningKeys, putKeys } from './key-store.ts'
import { rootOf, splitHashes } from './merkle.ts'
import type { SigningKey, SigningKeys } from './signing-keys.ts'

const eventsMax = 4096
const intervalMs = 60_000
/** How many trees are signed in one transaction, at most. */
export const headsMax = 100

type Deps = { db: Db; now: Clock; keys: SigningKeys }

/** Publishes the public keys. To be called before the first checkpoint is signed. */
export async function publishKeys({ db, now, keys }: Deps) {
  await transact(db, async (tx) => {
    await putKeys(tx, keys, now())
    const known = new Map((await listSigningKeys(tx)).map((key) => [key.id, key.publicKey]))
    const other = keys.find(({ id, publicKey }) => !known.get(id)?.equals(publicKey))
    if (!other) return
    throw new Error(
      `AUDIT_SIGNING_KEYS: key ${other.id} is not the one that has signed under this number before. Give a new key a number of its own.`,
    )
  })
}

/** Signs the trees that have grown by 4,096 events, and after a minute those that have grown at all. Returns how many. */
export async function signCheckpoints({ db, now, keys }: Deps): Promise<number> {
  return transactNamed(db, {}, async (tx) => {
    const heads = await lockUnsignedHeads(tx, { events: eventsMax, intervalMs, limit: headsMax })
    if (heads.length === 0) return 0
    const at = now()
    await insertCheckpoints(
      tx,
      heads.map((head) => signHead(head, keys[0], at)),
    )
    return heads.length
  })
}

function signHead(head: UnsignedHead, key: SigningKey, at: Date): StoredCheckpoint {
  const { organizationId, size, frontier, previousHash } = head
  const root = rootOf(splitHashes(frontier))
  const note = writeNote({ organizationId, size, root, previousHash, at }, key)
  return { organizationId, size, root, frontier, keyId: key.id, note, hash: hashNote(note), at }
}
