import type { Db } from '#platform/database.ts'
import type { SecretBox } from '#platform/secrets.ts'
import { rewrapColumn, type RewrapReport } from '#platform/secrets/rewrap-secrets.ts'
import { transact } from '#platform/transaction.ts'

import { listSealedSecrets, replaceSealedSecrets, type SealedSecrets } from './sink-store.ts'
import { sealContext } from './sink.ts'

type SinkReport = Omit<RewrapReport, 'found'> & { sinks: number }

/** Seals the secrets of all sinks with the current master key. Repeating it changes nothing. */
export async function rewrapSinkSecrets(db: Db, secretBox: SecretBox): Promise<SinkReport> {
  const { found: sinks, ...report } = await rewrapColumn<SealedSecrets>(
    {
      list: (after, limit) => listSealedSecrets(db, after, limit),
      sealedIn: ({ secrets }) => secrets,
      contextOf: sealContext,
      replace: (row, sealed) => transact(db, (tx) => replaceSealedSecrets(tx, row, sealed)),
    },
    secretBox,
  )
  return { sinks, ...report }
}
