import type { Db } from '#platform/database.ts'
import type { SecretBox } from '#platform/secrets.ts'
import { rewrapColumn, type RewrapReport } from '#platform/secrets/rewrap-secrets.ts'

import {
  listSealedProposals,
  replaceSealedProposal,
  type SealedProposal,
} from './proposal-store.ts'
import { proposalSealContext } from './proposal.ts'

/** Seals the proposed secrets with the current master key. Repeating it changes nothing. */
export const rewrapProposedSecrets = async (db: Db, secretBox: SecretBox): Promise<RewrapReport> =>
  rewrapColumn<SealedProposal>(
    {
      list: (after, limit) => listSealedProposals(db, after, limit),
      sealedIn: ({ secret }) => secret,
      contextOf: proposalSealContext,
      replace: (row, sealed) => replaceSealedProposal(db, row, sealed),
    },
    secretBox,
  )
