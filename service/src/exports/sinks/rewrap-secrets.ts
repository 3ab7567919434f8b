import type { Db } from '#platform/database.ts'
import type { SecretBox } from '#platform/secrets.ts'
import { transact } from '#platform/transaction.ts'

import { listSealedSecrets, replaceSealedSecrets, type SealedSecrets } from './sink-store.ts'
import { sealContext } from './sink.ts'

const batchSize = 100

export type RewrapReport = {
  sinks: number
  rewrapped: number
  /** Sinks whose secrets no master key opens. */
  unreadable: string[]
}

/** Seals the secrets of all sinks with the current master key. Repeating it changes nothing. */
export async function rewrapSinkSecrets(db: Db, secretBox: SecretBox): Promise<RewrapReport> {
  const report: RewrapReport = { sinks: 0, rewrapped: 0, unreadable: [] }
  for (let after = ''; ;) {
    const batch = await listSealedSecrets(db, after, batchSize)
    for (const sealed of batch) {
      report.sinks++
      const result = await rewrap(db, sealed, secretBox)
      if (result === 'rewrapped') report.rewrapped++
      if (result === 'unreadable') report.unreadable.push(sealed.id)
    }
    const last = batch.at(-1)
    if (!last || batch.length < batchSize) return report
    after = last.id
  }
}

async function rewrap(db: Db, sealed: SealedSecrets, secretBox: SecretBox) {
  if (secretBox.isCurrent(sealed.secrets)) return 'current'
  const context = sealContext(sealed)
  const opened = tryOpen(secretBox, sealed.secrets, context)
  if (!opened) return 'unreadable'
  const again = secretBox.seal(opened, context)
  // A secret that is saved at the same time is already sealed with the current key.
  const isReplaced = await transact(db, (tx) => replaceSealedSecrets(tx, sealed, again))
  return isReplaced ? 'rewrapped' : 'current'
}

function tryOpen(secretBox: SecretBox, sealed: Buffer, context: string): Buffer | undefined {
  try {
    return secretBox.open(sealed, context)
  } catch {
    return undefined
  }
}
