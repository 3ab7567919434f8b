import { listSealedSecrets } from '#exports/sinks/sink-store.ts'
import { sealContext } from '#exports/sinks/sink.ts'
import { listSealedGuardrails } from '#gateway-config/guardrails/guardrail-store.ts'
import { guardrailSealContext } from '#gateway-config/guardrails/saved-guardrail.ts'
import { listSealedAnswers, sealContextOf } from '#http/mutation/idempotency-store.ts'
import type { Tx } from '#platform/database.ts'

export type SealedSample = { sealed: Buffer; context: string }

/** How many of each kind are tried: single ones may have been sealed with a key that was lost. */
const samplesMax = 20

/** Values that some master key has sealed. */
export async function listSealedSamples(tx: Tx): Promise<SealedSample[]> {
  const secrets = await listSealedSecrets(tx, '', samplesMax)
  const guardrails = await listSealedGuardrails(tx, '', samplesMax)
  const answers = await listSealedAnswers(tx, samplesMax)
  return [
    ...secrets.map((sink) => ({ sealed: sink.secrets, context: sealContext(sink) })),
    ...guardrails.map((each) => ({ sealed: each.secret, context: guardrailSealContext(each) })),
    ...answers.map((each) => ({ sealed: each.answer, context: sealContextOf(each) })),
  ]
}
