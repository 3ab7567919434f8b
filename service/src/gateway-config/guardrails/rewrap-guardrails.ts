import { insertChange } from '#audit/change-store.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { SecretBox } from '#platform/secrets.ts'
import { rewrapColumn, type RewrapReport } from '#platform/secrets/rewrap-secrets.ts'
import { transact } from '#platform/transaction.ts'

import {
  listSealedGuardrails,
  replaceSealedGuardrail,
  type SealedGuardrail,
} from './guardrail-store.ts'
import { guardrailSealContext } from './saved-guardrail.ts'

type Deps = { db: Db; secretBox: SecretBox; now: Clock }

/** Seals the secrets of all guardrails with the current master key. Repeating it changes nothing. */
export async function rewrapGuardrailSecrets(deps: Deps): Promise<RewrapReport> {
  return rewrapColumn<SealedGuardrail>(
    {
      list: (after, limit) => listSealedGuardrails(deps.db, after, limit),
      sealedIn: ({ secret }) => secret,
      contextOf: guardrailSealContext,
      replace: (row, sealed) => replaceSecret(row, sealed, deps),
    },
    deps.secretBox,
  )
}

/** Processes are notified, because their copies on disk have the secret as it was sealed before. */
async function replaceSecret(row: SealedGuardrail, sealed: Buffer, { db, now }: Deps) {
  const { organizationId, id: objectId } = row
  return transact(db, async (tx) => {
    const isReplaced = await replaceSealedGuardrail(tx, row, sealed)
    if (isReplaced) await insertChange(tx, { organizationId, kind: 'policy', objectId }, now())
    return isReplaced
  })
}
