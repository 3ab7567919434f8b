import { rewrapSinkSecrets } from '#exports/sinks/rewrap-secrets.ts'
import { rewrapGuardrailSecrets } from '#gateway-config/guardrails/rewrap-guardrails.ts'
import { rewrapProposedSecrets } from '#gateway-config/proposals/rewrap-proposals.ts'
import { adoptKey, rewrapKeyCheck } from '#installation/installation.ts'

import type { CommandOutput, OperatorDeps } from './command.ts'

/** The database takes the current master key for its own, although nothing proves it. */
export async function adoptMasterKey({ db, secretBox }: OperatorDeps): Promise<CommandOutput> {
  return { result: { adopted: await adoptKey(db, secretBox) } }
}

/** Seals what an older master key has sealed with the current one. */
export async function rewrapSecrets({ db, secretBox, now }: OperatorDeps): Promise<CommandOutput> {
  await rewrapKeyCheck(db, secretBox)
  const { sinks, ...ofSinks } = await rewrapSinkSecrets(db, secretBox)
  const { found: guardrails, ...ofGuardrails } = await rewrapGuardrailSecrets({
    db,
    secretBox,
    now,
  })
  const { found: proposals, ...ofProposals } = await rewrapProposedSecrets(db, secretBox)
  const rewrapped = ofSinks.rewrapped + ofGuardrails.rewrapped + ofProposals.rewrapped
  const unreadable = [...ofSinks.unreadable, ...ofGuardrails.unreadable, ...ofProposals.unreadable]
  const result = { sinks, guardrails, proposals, rewrapped, unreadable: unreadable.length }
  if (unreadable.length === 0) return { result }
  const named = unreadable.slice(0, 10).join(', ')
  const failure = `No key of MASTER_KEYS opens the secrets of ${named}. Add the key that sealed them, or save these secrets again.`
  return { result, failure, exitCode: 1 }
}
